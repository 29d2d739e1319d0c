//! The texts of the built-in formats, and texts that wait to be compiled.
//!
//! HAProxy documents each built-in format as a `log-format` of its own (manual, sections 8.2.2 to 8.2.4), so that is how they are
//! kept: one compiler fills them all.

use terse_config::Place;

/// A log format as it was written, until the plan compiles it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FormatText {
    /// Its text: literals, `%aliases` and `%[samples]`.
    pub text: Vec<u8>,
    /// Its place in the configuration; of a built-in format, the place of the keyword that selects it.
    pub place: Place,
}

/// `option httplog`.
pub const HTTP_FORMAT: &str =
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";

/// `option httplog clf`.
pub const HTTP_CLF_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc \
     %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";

/// `option httpslog`: [`HTTP_FORMAT`] and the client's TLS connection.
pub const HTTPS_FORMAT: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq \
     %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";

/// `option tcplog`.
pub const TCP_FORMAT: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";

/// `option tcplog clf`.
pub const TCP_CLF_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- \
     %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";

/// Logged when a connection to a proxy in `mode http` is accepted that has targets and no format.
pub const CONNECT_HTTP_FORMAT: &str = "Connect from %ci:%cp to %fi:%fp (%f/HTTP)";

/// The same in `mode tcp`.
pub const CONNECT_TCP_FORMAT: &str = "Connect from %ci:%cp to %fi:%fp (%f/TCP)";

/// Begins the line of a connection that failed before there was a transaction; its address's name and the reason follow.
pub const FAILURE_FORMAT: &str = "%ci:%cp [%t] %f/";

/// The variables under which a configuration finds these texts, to extend them: `log-format "${HAPROXY_HTTP_LOG_FMT} %ID"`.
pub const FORMAT_VARIABLES: [(&str, &str); 5] = [
    ("HAPROXY_HTTP_LOG_FMT", HTTP_FORMAT),
    ("HAPROXY_HTTP_CLF_LOG_FMT", HTTP_CLF_FORMAT),
    ("HAPROXY_HTTPS_LOG_FMT", HTTPS_FORMAT),
    ("HAPROXY_TCP_LOG_FMT", TCP_FORMAT),
    ("HAPROXY_TCP_CLF_LOG_FMT", TCP_CLF_FORMAT),
];
