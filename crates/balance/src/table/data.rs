//! Kinds of data in an entry of a stick table: HAProxy's names, in the order in which its dumps write them.

use std::fmt;

/// A kind of data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Data {
    /// `server_id`: the number of the server that served the key last; 0: none.
    ServerId,
    /// `gpt0`: a general-purpose tag.
    Gpt0,
    /// `gpc0`: a general-purpose counter.
    Gpc0,
    /// `gpc0_rate`: increments of `gpc0` in a period.
    Gpc0Rate,
    /// `conn_cnt`: connections, or requests where requests are tracked.
    ConnCnt,
    /// `conn_rate`: the same in a period.
    ConnRate,
    /// `conn_cur`: current connections.
    ConnCur,
    /// `sess_cnt`: connections that were accepted.
    SessCnt,
    /// `sess_rate`: the same in a period.
    SessRate,
    /// `http_req_cnt`: requests.
    HttpReqCnt,
    /// `http_req_rate`: the same in a period.
    HttpReqRate,
    /// `http_err_cnt`: requests that failed by their client's fault.
    HttpErrCnt,
    /// `http_err_rate`: the same in a period.
    HttpErrRate,
    /// `bytes_in_cnt`: bytes from clients.
    BytesInCnt,
    /// `bytes_in_rate`: the same in a period.
    BytesInRate,
    /// `bytes_out_cnt`: bytes to clients.
    BytesOutCnt,
    /// `bytes_out_rate`: the same in a period.
    BytesOutRate,
    /// `gpc1`: a second general-purpose counter.
    Gpc1,
    /// `gpc1_rate`: increments of `gpc1` in a period.
    Gpc1Rate,
    /// `server_key`: the name or address of the server that served the key last.
    ServerKey,
    /// `http_fail_cnt`: requests that failed by their server's fault.
    HttpFailCnt,
    /// `http_fail_rate`: the same in a period.
    HttpFailRate,
    /// `gpt(<n>)`: tags by number.
    Gpt,
    /// `gpc(<n>)`: counters by number.
    Gpc,
    /// `gpc_rate(<n>,<period>)`: increments of counters by number in a period.
    GpcRate,
    /// `glitch_cnt`: glitches: odd but valid uses of the protocol by clients.
    GlitchCnt,
    /// `glitch_rate`: the same in a period.
    GlitchRate,
}

/// Representation of a kind of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A signed number of 32 bits.
    Signed,
    /// A number of 32 bits that wraps.
    Count,
    /// A number of 64 bits.
    Bytes,
    /// Events in a period.
    Rate,
    /// A name.
    Name,
}

/// Number of kinds.
pub(super) const KINDS: usize = Data::ALL.len();

impl Data {
    /// All kinds, in the order of dumps.
    pub const ALL: [Data; 27] = [
        Data::ServerId,
        Data::Gpt0,
        Data::Gpc0,
        Data::Gpc0Rate,
        Data::ConnCnt,
        Data::ConnRate,
        Data::ConnCur,
        Data::SessCnt,
        Data::SessRate,
        Data::HttpReqCnt,
        Data::HttpReqRate,
        Data::HttpErrCnt,
        Data::HttpErrRate,
        Data::BytesInCnt,
        Data::BytesInRate,
        Data::BytesOutCnt,
        Data::BytesOutRate,
        Data::Gpc1,
        Data::Gpc1Rate,
        Data::ServerKey,
        Data::HttpFailCnt,
        Data::HttpFailRate,
        Data::Gpt,
        Data::Gpc,
        Data::GpcRate,
        Data::GlitchCnt,
        Data::GlitchRate,
    ];

    /// Name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Data::ServerId => "server_id",
            Data::Gpt0 => "gpt0",
            Data::Gpc0 => "gpc0",
            Data::Gpc0Rate => "gpc0_rate",
            Data::ConnCnt => "conn_cnt",
            Data::ConnRate => "conn_rate",
            Data::ConnCur => "conn_cur",
            Data::SessCnt => "sess_cnt",
            Data::SessRate => "sess_rate",
            Data::HttpReqCnt => "http_req_cnt",
            Data::HttpReqRate => "http_req_rate",
            Data::HttpErrCnt => "http_err_cnt",
            Data::HttpErrRate => "http_err_rate",
            Data::BytesInCnt => "bytes_in_cnt",
            Data::BytesInRate => "bytes_in_rate",
            Data::BytesOutCnt => "bytes_out_cnt",
            Data::BytesOutRate => "bytes_out_rate",
            Data::Gpc1 => "gpc1",
            Data::Gpc1Rate => "gpc1_rate",
            Data::ServerKey => "server_key",
            Data::HttpFailCnt => "http_fail_cnt",
            Data::HttpFailRate => "http_fail_rate",
            Data::Gpt => "gpt",
            Data::Gpc => "gpc",
            Data::GpcRate => "gpc_rate",
            Data::GlitchCnt => "glitch_cnt",
            Data::GlitchRate => "glitch_rate",
        }
    }

    /// The kind of that name.
    pub fn of(name: &str) -> Option<Data> {
        Data::ALL.into_iter().find(|data| data.name() == name)
    }

    /// Kind and number of a name in a dump: `gpc0_rate`, `gpc12`. Where a table keeps counters by number, `gpc0` means
    /// the first of them. Of an array, `gpc[12]` means the same as `gpc12`, and its name alone the first.
    pub fn numbered(name: &str) -> Option<(Data, u32)> {
        if let Some(data) = Data::of(name) {
            return Some((data, 0));
        }
        if let Some((array, number)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            let data = Data::of(array).filter(|data| data.is_array())?;
            return Some((data, plain(number)?));
        }
        let digits = name.find(|c: char| c.is_ascii_digit())?;
        let (prefix, rest) = name.split_at(digits);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let data = Data::of(&format!("{prefix}{suffix}")).filter(|data| data.is_array())?;
        Some((data, plain(number)?))
    }

    /// Representation of the kind.
    pub const fn shape(self) -> Shape {
        match self {
            Data::ServerId => Shape::Signed,
            Data::ServerKey => Shape::Name,
            Data::BytesInCnt | Data::BytesOutCnt => Shape::Bytes,
            Data::Gpc0Rate
            | Data::ConnRate
            | Data::SessRate
            | Data::HttpReqRate
            | Data::HttpErrRate
            | Data::BytesInRate
            | Data::BytesOutRate
            | Data::Gpc1Rate
            | Data::HttpFailRate
            | Data::GpcRate
            | Data::GlitchRate => Shape::Rate,
            _ => Shape::Count,
        }
    }

    /// Whether the kind is an array, with elements by number.
    pub const fn is_array(self) -> bool {
        matches!(self, Data::Gpt | Data::Gpc | Data::GpcRate)
    }

    /// Whether it counts bytes in a period, for `brates-factor`.
    pub(super) const fn is_byte_rate(self) -> bool {
        matches!(self, Data::BytesInRate | Data::BytesOutRate)
    }
}

/// A number of digits alone.
fn plain(number: &str) -> Option<u32> {
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order() {
        assert!(Data::ALL.iter().enumerate().all(|(index, data)| *data as usize == index));
    }

    #[test]
    fn names_with_numbers() {
        assert_eq!(Data::numbered("gpc0"), Some((Data::Gpc0, 0)));
        assert_eq!(Data::numbered("gpc12"), Some((Data::Gpc, 12)));
        assert_eq!(Data::numbered("gpc2_rate"), Some((Data::GpcRate, 2)));
        assert_eq!(Data::numbered("gpt3"), Some((Data::Gpt, 3)));
        assert_eq!(Data::numbered("conn_cnt"), Some((Data::ConnCnt, 0)));
        assert_eq!(Data::numbered("gpc"), Some((Data::Gpc, 0)));
        assert_eq!(Data::numbered("gpt[1]"), Some((Data::Gpt, 1)));
        assert_eq!(Data::numbered("gpc_rate[2]"), Some((Data::GpcRate, 2)));
        for wrong in [
            "gpc[",
            "gpc[]",
            "gpc[+1]",
            "gpc[-1]",
            "gpc]",
            "conn_cnt[0]",
            "gpc0[0]",
            "[1]",
            "",
            "gpc99999999999",
            "conn_cnt1",
            "7",
            "gpt0_rate",
            "\u{e9}1",
        ] {
            assert_eq!(Data::numbered(wrong), None, "{wrong}");
        }
    }
}
