//! Users and their passwords: `userlist` sections (HAProxy manual §3.4).

mod crypt;
mod verified;

use self::verified::Verified;
pub use crypt::Crypt;

/// The users of one `userlist` section.
#[derive(Debug, Default)]
pub struct Userlist {
    name: String,
    users: Vec<User>,
    verified: Verified,
}

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    /// The name.
    pub name: Box<[u8]>,
    /// What the password is; `None`: there is none, and nobody is this user.
    pub password: Option<Password>,
    /// The groups that the user is in.
    pub groups: Vec<Box<[u8]>>,
}

/// What a password is known by.
#[derive(Clone, Debug)]
pub enum Password {
    /// Itself.
    Plain(Box<[u8]>),
    /// A hash as crypt(3) writes it.
    Hash(Crypt),
}

impl Userlist {
    /// The section `name` with these users.
    pub fn new(name: String, users: Vec<User>) -> Self {
        Self { name, users, verified: Verified::default() }
    }

    /// The section's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user of this name and password; `None` when there is none. A hash that takes long is asked once for a
    /// password, as long as it is among those remembered.
    pub fn user(&self, name: &[u8], password: &[u8]) -> Option<&User> {
        let user = self.users.iter().find(|user| *user.name == *name)?;
        let fits = match user.password.as_ref()? {
            Password::Plain(plain) => crypt::equal(plain, password),
            Password::Hash(hash) => self.verified.fits(name, password, || hash.fits(password)),
        };
        fits.then_some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> Userlist {
        let user = |name: &str, password: Option<Password>| User {
            name: name.as_bytes().into(),
            password,
            groups: vec![b"staff".as_slice().into()],
        };
        let hash = Crypt::read(b"$1$saltsalt$9xy1btjgzLYfb7hivXtC//").ok();
        Userlist::new(
            "l".into(),
            vec![
                user("plain", Some(Password::Plain(b"secret".as_slice().into()))),
                user("hashed", hash.map(Password::Hash)),
                user("none", None),
            ],
        )
    }

    #[test]
    fn users_are_who_knows_their_password() {
        let list = list();
        let is = |name: &str, password: &str| list.user(name.as_bytes(), password.as_bytes()).is_some();
        assert!(is("plain", "secret") && !is("plain", "secre") && !is("plain", "") && !is("Plain", "secret"));
        assert!(!is("none", "") && !is("nobody", "secret"));
        for _ in 0..2 {
            assert!(is("hashed", "secret") && !is("hashed", "wrong"));
        }
    }
}
