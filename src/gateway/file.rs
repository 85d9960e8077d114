//! Files that the operator names: read whole, and only where that ends.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// The largest file that is read.
const LARGEST: u64 = 256 << 20;

/// The bytes of a regular file, links followed. Pipes, sockets and devices are not opened: reading them may wait
/// or never end.
///
/// # Errors
/// Whatever reading it gave; that it is no regular file; that it holds more than 256 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "it holds more than 256 MiB");
    if found.len() > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or(0));
    // It may grow meanwhile, and what the kernel makes up says nothing of its length.
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len <= LARGEST) { Ok(bytes) } else { Err(too_large()) }
}
