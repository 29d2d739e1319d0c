"""terse on loopback, with certificates of its own. Its listening sockets are made here and inherited: no port has to be guessed."""

import datetime
import os
import socket
import subprocess
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NAME = "terse.test"
# Compresses well; long enough that compressed records are shorter by far.
BODY = "so that there is something to compress; " * 400

# What a user writes who writes nothing about strength.
PLAIN = "crt rsa.pem crt ecdsa.pem"
# Everything that OpenSSL still has.
OPEN = "crt rsa.pem ssl-min-ver TLSv1.0 ciphers ALL:COMPLEMENTOFALL:@SECLEVEL=0 prefer-client-ciphers tls-compression allow"
WORDS = {
    "plain": PLAIN,
    "open": OPEN,
    "detect": f"{PLAIN} tls-compression detect",
    "allow": f"{PLAIN} tls-compression allow",
}


class Terse:
    """The program; each of WORDS is an address."""

    def __init__(self, program: str, folder: Path):
        self.authority = folder / "authority.pem"
        write_certificates(folder)
        self.sockets = {name: socket.create_server(("127.0.0.1", 0), backlog=128) for name in WORDS}
        lines = ["global", "  nbthread 1", "defaults", "  mode http"]
        lines += [f"  timeout {kind} 30s" for kind in ("client", "server", "connect")]
        for name, words in WORDS.items():
            lines += [f"frontend {name}", f"  bind fd@{self.sockets[name].fileno()} ssl {words}"]
            lines += ["  http-request return status 200 content-type text/plain lf-file body.txt"]
        (folder / "body.txt").write_text(BODY)
        file = folder / "scan.cfg"
        file.write_text("\n".join(lines) + "\n")
        descriptors = [one.fileno() for one in self.sockets.values()]
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [program, "-f", str(file)], cwd=folder, pass_fds=descriptors, stdout=self.log, stderr=subprocess.STDOUT
        )
        self.wait()

    def port(self, name: str = "plain") -> int:
        return self.sockets[name].getsockname()[1]

    def connect(self, name: str = "plain") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port(name)), timeout=20)

    def wait(self) -> None:
        """The sockets listen already: it serves once it refuses what is no TLS."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None and time.monotonic() < deadline:
            with self.connect() as one:
                one.settimeout(1)
                try:
                    one.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    one.recv(1)
                    return
                except (TimeoutError, ConnectionError):
                    pass
        self.log.seek(0)
        raise RuntimeError(f"{self.process.args[0]} does not serve:\n{self.log.read()}")

    def __enter__(self) -> "Terse":
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        for one in self.sockets.values():
            one.close()
        self.log.close()


def write_certificates(folder: Path) -> None:
    """An authority, and a certificate of each kind of key from it: as a public authority would give them."""
    root_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "scan's authority")])
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    root = begun(root_name, root_name, root_key, root_key, days=10)
    root = root.add_extension(x509.BasicConstraints(True, 0), True).add_extension(usage, True)
    root = root.sign(root_key, hashes.SHA256())
    (folder / "authority.pem").write_bytes(root.public_bytes(serialization.Encoding.PEM))
    for name, key in (("rsa", rsa.generate_private_key(65537, 2048)), ("ecdsa", ec.generate_private_key(ec.SECP256R1()))):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
        usage = x509.KeyUsage(True, False, name == "rsa", False, False, False, False, False, False)
        leaf = begun(subject, root_name, key, root_key, days=5)
        leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), False)
        leaf = leaf.add_extension(x509.BasicConstraints(False, None), True).add_extension(usage, True)
        leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
        leaf = leaf.sign(root_key, hashes.SHA256())
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with open(os.open(folder / f"{name}.pem", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(leaf.public_bytes(serialization.Encoding.PEM) + private)


def begun(subject, issuer, key, issuer_key, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=days))
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
    above = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return builder.add_extension(above, False)
