"""What sslyze finds, all its scan commands, and whether Mozilla would call it "intermediate"."""

import warnings
from pathlib import Path
from typing import Callable

from sslyze import (
    CertificateInfoExtraArgument,
    RobotScanResultEnum,
    ScanCommand,
    ScanCommandsExtraArguments,
    Scanner,
    ServerNetworkConfiguration,
    ServerNetworkLocation,
    ServerScanRequest,
)
from sslyze.mozilla_tls_profile.tls_config_checker import (
    MozillaTlsConfiguration,
    ServerNotCompliantWithTlsConfiguration,
    TlsConfigurationEnum,
    check_server_against_tls_configuration,
)
from sslyze.plugins.session_resumption.implementation import TlsResumptionSupportEnum

from finding import Finding, tried
from proxy import NAME

HOW = "sslyze"
OLD = {"SSL 2.0": "ssl_2_0", "SSL 3.0": "ssl_3_0", "TLS 1.0": "tls_1_0", "TLS 1.1": "tls_1_1"}
NOT_VULNERABLE = (RobotScanResultEnum.NOT_VULNERABLE_NO_ORACLE, RobotScanResultEnum.NOT_VULNERABLE_RSA_NOT_SUPPORTED)


def scan(port: int, authority: Path) -> list[Finding]:
    # Its stores of authorities hold certificates whose form its own library warns of.
    warnings.filterwarnings("ignore", module="sslyze|cryptography")
    request = ServerScanRequest(
        server_location=ServerNetworkLocation(NAME, port, "127.0.0.1"),
        network_configuration=ServerNetworkConfiguration(NAME, network_timeout=30, network_max_retries=1),
        scan_commands=set(ScanCommand),
        scan_commands_extra_arguments=ScanCommandsExtraArguments(
            certificate_info=CertificateInfoExtraArgument(custom_ca_file=authority)
        ),
    )
    scanner = Scanner(per_server_concurrent_connections_limit=2)
    scanner.queue_scans([request])
    (scanned,) = scanner.get_results()
    result = scanned.scan_result

    def row(what: str, command: str, judge: Callable) -> Finding:
        def look() -> tuple[str, str]:
            attempt = getattr(result, command)
            if attempt.result is None:
                raise RuntimeError(f"{attempt.error_reason}")
            return judge(attempt.result)

        return tried(what, HOW, look)

    def is_not(flag: str, wrong: str) -> Callable:
        return lambda result: (wrong if getattr(result, flag) else "", "")

    def has(flag: str, wrong: str) -> Callable:
        return lambda result: ("" if getattr(result, flag) else wrong, "")

    rows = [row(name, f"{command}_cipher_suites", is_not("is_tls_version_supported", "spoken")) for name, command in OLD.items()]
    rows += [
        row("TLS 1.2", "tls_1_2_cipher_suites", suites),
        row("TLS 1.3", "tls_1_3_cipher_suites", suites),
        row("groups of the key exchange", "elliptic_curves", groups),
        row("certificates", "certificate_info", certificates),
        row("extended master secret", "tls_extended_master_secret", has("supports_ems_extension", "missing")),
        row("Heartbleed", "heartbleed", is_not("is_vulnerable_to_heartbleed", "open")),
        row("CCS injection", "openssl_ccs_injection", is_not("is_vulnerable_to_ccs_injection", "open")),
        row("ROBOT", "robot", lambda found: ("" if found.robot_result in NOT_VULNERABLE else found.robot_result.name, "")),
        row("renegotiation by clients", "session_renegotiation", is_not("is_vulnerable_to_client_renegotiation_dos", "taken")),
        row("secure renegotiation", "session_renegotiation", has("supports_secure_renegotiation", "missing")),
        row("compression (CRIME)", "tls_compression", is_not("supports_compression", "taken")),
        row("fallback SCSV (POODLE)", "tls_fallback_scsv", has("supports_fallback_scsv", "missing")),
        row("sessions resumed", "session_resumption", resumption),
        row("early data", "tls_1_3_early_data", is_not("supports_early_data", "taken")),
        # What a site says of itself is not the bind line's.
        row("headers of the site", "http_headers", lambda _: ("", "none: they are the site's")),
        tried('Mozilla\'s "intermediate"', HOW, lambda: mozilla(scanned)),
    ]
    return rows


def suites(found) -> tuple[str, str]:
    names = [one.cipher_suite.name for one in found.accepted_cipher_suites]
    # Of TLS 1.3 all are so.
    weak = [name for name in names if "_WITH_" in name and not is_strong(name)]
    if not found.is_tls_version_supported:
        return "not spoken", ""
    return ", ".join(weak), f"{len(names)} suites, each forward secret and authenticated"


def is_strong(name: str) -> bool:
    exchange, cipher = name.split("_WITH_")
    return exchange.startswith(("TLS_ECDHE_", "TLS_DHE_")) and ("GCM" in cipher or "POLY1305" in cipher)


def groups(found) -> tuple[str, str]:
    names = sorted(curve.name for curve in found.supported_curves or [])
    small = [curve for curve in names if any(size in curve for size in ("160", "163", "192", "193", "224"))]
    return ", ".join(small), ", ".join(names)


def certificates(found) -> tuple[str, str]:
    weak = []
    kinds = set()
    for shown in found.certificate_deployments:
        leaf = shown.received_certificate_chain[0]
        kinds.add(type(leaf.public_key()).__name__.removesuffix("PublicKey"))
        if not shown.verified_certificate_chain:
            weak.append("a chain that cannot be verified")
        if not shown.received_chain_has_valid_order:
            weak.append("a chain in disorder")
        if shown.received_chain_contains_anchor_certificate:
            weak.append("the root in the chain")
        if shown.verified_chain_has_sha1_signature:
            weak.append("SHA-1")
    return ", ".join(weak), " and ".join(sorted(kinds))


def resumption(found) -> tuple[str, str]:
    by = {"by name": found.session_id_resumption_result, "by tickets": found.tls_ticket_resumption_result}
    # To make a new one is no weakness, to mix them up would be.
    weak = [how for how, result in by.items() if result == TlsResumptionSupportEnum.PARTIALLY_SUPPORTED]
    resumed = [how for how, result in by.items() if result == TlsResumptionSupportEnum.FULLY_SUPPORTED]
    return ", ".join(f"sometimes {how}" for how in weak), ", ".join(resumed)


def mozilla(scanned) -> tuple[str, str]:
    try:
        check_server_against_tls_configuration(scanned, MozillaTlsConfiguration.get(TlsConfigurationEnum.MOZILLA_INTERMEDIATE))
    except ServerNotCompliantWithTlsConfiguration as wrong:
        return "; ".join(wrong.issues.values()), ""
    return "", "it is"
