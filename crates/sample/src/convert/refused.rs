//! Converters that are understood and not built: to use one is an error that says so.

use crate::registry::Converter;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::refused(
        "debug",
        "Writes the value to a sink.",
        "expressions do not write to rings: 'http-request do-log' writes a line with values",
    ),
    Converter::refused("capture-req", "Keeps the value in a slot of the request.", CAPTURE),
    Converter::refused("capture-res", "Keeps the value in a slot of the response.", CAPTURE),
    Converter::refused("x509_v_err_str", "The name of an error of a certificate's check.", "no certificates of peers are checked"),
];

const CAPTURE: &str = "expressions do not capture: write 'http-request capture <sample> id <id>', or 'http-response capture'";
