//! Converters that are understood and not built: to use one is an error that says so.

use crate::registry::Converter;

pub(crate) const CONVERTERS: &[Converter] = &[
    map("map"),
    map("map_str"),
    map("map_str_str"),
    map("map_str_int"),
    map("map_str_ip"),
    map("map_beg"),
    map("map_beg_str"),
    map("map_beg_int"),
    map("map_beg_ip"),
    map("map_sub"),
    map("map_sub_str"),
    map("map_sub_int"),
    map("map_sub_ip"),
    map("map_dir"),
    map("map_dir_str"),
    map("map_dir_int"),
    map("map_dir_ip"),
    map("map_dom"),
    map("map_dom_str"),
    map("map_dom_int"),
    map("map_dom_ip"),
    map("map_end"),
    map("map_end_str"),
    map("map_end_int"),
    map("map_end_ip"),
    map("map_reg"),
    map("map_reg_str"),
    map("map_reg_int"),
    map("map_reg_ip"),
    map("map_regm"),
    map("map_regm_str"),
    map("map_int"),
    map("map_int_str"),
    map("map_int_int"),
    map("map_int_ip"),
    map("map_ip"),
    map("map_ip_str"),
    map("map_ip_int"),
    map("map_ip_ip"),
    Converter::refused("debug", "Writes the value to a sink.", "there are no event sinks"),
    Converter::refused("jwt_header_query", "A value in the header of a JSON Web Token.", JWT),
    Converter::refused("jwt_payload_query", "A value in the payload of a JSON Web Token.", JWT),
    Converter::refused("jwt_verify", "Whether a JSON Web Token is signed rightly.", JWT),
    Converter::refused("aes_gcm_enc", "The bytes, encrypted.", AES),
    Converter::refused("aes_gcm_dec", "The bytes, decrypted.", AES),
    Converter::refused("aes_cbc_enc", "The bytes, encrypted.", AES),
    Converter::refused("aes_cbc_dec", "The bytes, decrypted.", AES),
];

const JWT: &str = "JSON Web Tokens are not built";
const AES: &str = "encryption is not built";

const fn map(name: &'static str) -> Converter {
    Converter::refused(name, "The value that a map file holds for it.", "maps are not built")
}
