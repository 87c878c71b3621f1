"""Owns: an authority of the tests' own and certificates that it signs, made by openssl. Does not own: what is tested."""

import os
import subprocess

DAYS = 40


def openssl(*words):
    done = subprocess.run(["openssl", *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


class Authority:
    """Signs certificates into a folder: `ca.crt`, and for each name `NAME.crt` and `NAME.key`."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.file = self.path(f"{name}.crt")
        key = self.new_key(name)
        openssl("req", "-x509", "-new", "-key", key, "-subj", f"/CN=tests {name}", "-days", str(DAYS), "-out", self.file)

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_key(self, name):
        key = self.path(f"{name}.key")
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        return key

    def sign(self, name, subject=None, names="DNS:localhost,IP:127.0.0.1", days=DAYS):
        """Certificate and key for a subject."""
        key, request, extensions = self.new_key(name), self.path(f"{name}.csr"), self.path(f"{name}.ext")
        openssl("req", "-new", "-key", key, "-subj", f"/O=tests/CN={subject or name}", "-out", request)
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        authority = ("-CA", self.file, "-CAkey", self.path(f"{self.name}.key"), "-CAcreateserial")
        certificate = self.path(f"{name}.crt")
        openssl("x509", "-req", "-in", request, *authority, "-days", str(days), "-extfile", extensions, "-out", certificate)
        return certificate, key

    def flags(self, certificate, key, clients="optional"):
        """What a server is started with."""
        return (
            *("--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", self.file),
            *("--tls-auth-clients", clients),
        )
