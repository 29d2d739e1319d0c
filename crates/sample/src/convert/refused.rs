//! Converters that are understood and not built: to use one is an error that says so.

use crate::registry::Converter;

pub(crate) const CONVERTERS: &[Converter] = &[Converter::refused(
    "x509_v_err_str",
    "The name of an error of a certificate's check.",
    "no certificates of peers are checked",
)];
