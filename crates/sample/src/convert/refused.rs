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
];

const fn map(name: &'static str) -> Converter {
    Converter::refused(name, "The value that a map file holds for it.", "maps are not built")
}
