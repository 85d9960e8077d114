//! `option forwardfor`.

use std::net::IpAddr;

use super::{Args, Draft, Loader};
use crate::{
    config::ForwardFor,
    lang::{ast::Word, code, diag::Diagnostic, suggest},
};

/// `option forwardfor [except NETWORK] [header NAME] [if-none]`; the last one of a proxy counts.
pub(in crate::lang) fn forwardfor(loader: &mut Loader<'_>, draft: &mut Draft, mut args: Args<'_>) {
    let mut made = ForwardFor { header: "X-Forwarded-For".into(), except: Vec::new(), if_none: false };
    while let Some(word) = args.next() {
        match word.text.as_slice() {
            b"if-none" => made.if_none = true,
            b"except" => {
                let Some(word) = loader.need(&mut args, "a network behind `except`") else { return };
                made.except.extend(network(loader, word));
            }
            b"header" => {
                let Some(word) = loader.need(&mut args, "a name behind `header`") else { return };
                made.header = word.lossy().into_owned();
                if !is_token(&word.text) {
                    let message = format!("`{}` is no field name", word.lossy());
                    loader.error(code::BAD_NAME, word.span, message);
                }
            }
            _ => {
                let message = format!("unknown word `{}` behind `option forwardfor`", word.lossy());
                let nearest = suggest::nearest(&word.lossy(), ["except", "header", "if-none"].into_iter());
                loader.report(Diagnostic::error(code::UNKNOWN_WORD, word.span, message).did_you_mean(nearest));
            }
        }
    }
    draft.forwardfor = Some(made);
}

/// An address, or a network as `ADDRESS/BITS`.
fn network(loader: &mut Loader<'_>, word: &Word) -> Option<(IpAddr, u8)> {
    let text = word.lossy();
    let (address, bits) = text.split_once('/').map_or((&*text, None), |(address, bits)| (address, Some(bits)));
    let network = address.parse::<IpAddr>().ok().and_then(|address| {
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        (bits <= most).then_some((address, bits))
    });
    if network.is_none() {
        let message = format!("`{text}` is no network");
        loader.report(
            Diagnostic::error(code::BAD_ADDRESS, word.span, message)
                .help("write it as `10.0.0.0/8` or `2001:db8::/32`"),
        );
    }
    network
}

/// A token (RFC 9110 §5.6.2).
fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}
