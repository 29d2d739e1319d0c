//! Converters that are understood and not built: their use is an error with a reason.

use crate::registry::Converter;

pub(crate) const CONVERTERS: &[Converter] = &[
    Converter::refused("51d.single", "What a database says of a client's device.", DEVICES),
    Converter::refused("da-csv-conv", "What a database says of a client's device.", DEVICES),
];

const DEVICES: &str = "databases of devices are not read";
