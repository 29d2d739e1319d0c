use terse_config::{Config, Environment, Loader, Settings, Source};
use terse_proxy::settings::ProxySettings;

fn load(text: &str) -> (Config, Vec<String>) {
    let tables = crate::KEYWORDS.iter().chain(terse_proxy::KEYWORDS).copied().chain([terse_sample::KEYWORDS]);
    let loader = Loader { tables: tables.collect(), environment: Environment::default() };
    let (config, diagnostics) = loader.load(&[Source { name: "test".into(), bytes: text.into() }], Settings::default());
    (config, diagnostics.iter().map(|d| d.reason.clone()).collect())
}

fn page(text: &str) -> super::PageSettings {
    let (mut config, said) = load(text);
    assert_eq!(said, [""; 0], "{text}");
    let mut section = config.sections.pop().unwrap();
    assert!(section.settings.take::<ProxySettings>().unwrap().service.is_some());
    section.settings.take().unwrap()
}

#[test]
fn lines_of_people() {
    let settings = page(
        "defaults\n stats uri /stats\n stats auth a:b\n\
         listen l\n stats enable\n stats auth c:d:e\n stats realm My\\ Stats\n stats refresh 10s\n stats hide-version\n stats show-node\n\
         \x20stats show-desc two words\n stats show-legends\n stats scope .\n stats scope other\n acl LOCAL src 127.0.0.1\n\
         \x20stats admin if LOCAL\n stats http-request allow if LOCAL\n stats http-request auth realm x unless LOCAL\n stats http-request deny\n",
    );
    assert_eq!((settings.uri.as_str(), settings.credentials.len()), ("/stats", 2));
    assert_eq!((settings.realm.as_deref(), settings.refresh.map(|time| time.as_secs())), (Some("My Stats"), Some(10)));
    assert_eq!((settings.node, settings.description), (Some(None), Some(Some("two words".into()))));
    assert_eq!((settings.legends, settings.version, settings.admin.len(), settings.rules.len()), (true, false, 1, 3));
    assert_eq!(settings.scope, [".", "other"]);
    assert_eq!(page("defaults\n stats refresh 5\nfrontend f\n stats show-version\n").refresh.unwrap().as_secs(), 5);
}

#[test]
fn a_section_changes_its_own_page_only() {
    let (mut config, said) = load("defaults\n stats uri /a\nfrontend f\n stats uri /b\nfrontend g\nfrontend h\n stats enable\n");
    assert_eq!(said, [""; 0]);
    let mut uri = || {
        let settings = &mut config.sections.remove(0).settings;
        assert!(settings.take::<ProxySettings>().unwrap().service.is_some());
        settings.take::<super::PageSettings>().unwrap().uri
    };
    assert_eq!([uri(), uri(), uri()], ["/b", "/a", "/a"]);
}

#[test]
fn faults() {
    for line in [
        "stats uri",
        "stats auth nobody",
        "stats refresh x",
        "stats enable x",
        "stats admin",
        "stats admin maybe",
        "stats http-request",
        "stats http-request explode",
        "stats http-request allow maybe",
        "stats scope",
    ] {
        let said = load(&format!("frontend f\n {line}\n")).1;
        assert_eq!(said.len(), 1, "{line}: {said:?}");
    }
}
