import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { duplexPair } from "node:stream";
import { connect, TLSSocket } from "node:tls";
import { systemClock } from "@sandpiper/core";
import { FakeClock } from "@sandpiper/core/testing";
import { expect, it, onTestFinished } from "vitest";
import { Keyring } from "../auth/keyring.ts";
import { CertificateAuthority } from "./certificate-authority.ts";

const HOST = "api.example.com";
const keyring = (...secrets: [string, ...string[]]) => new Keyring({ secrets, salt: "test" });

it("makes certificates that openssl accepts under its strict rules", async () => {
  const authority = new CertificateAuthority({ keyring: keyring("a".repeat(32)), clock: systemClock });
  const { certificate } = await handshake(authority, authority.certificates);
  const directory = mkdtempSync(join(tmpdir(), "sandpiper-certificates-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const [ca, leaf] = [join(directory, "ca.pem"), join(directory, "leaf.pem")];
  writeFileSync(ca, authority.certificates);
  writeFileSync(leaf, certificate.toString());
  const hash = execFileSync("openssl", ["x509", "-noout", "-subject_hash", "-in", ca]).toString().trim();
  expect(authority.anchors.map((anchor) => anchor.hash)).toEqual([hash]);
  const verify = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname"];
  expect(execFileSync("openssl", [...verify, HOST, "-CAfile", ca, leaf]).toString()).toBe(`${leaf}: OK\n`);
  const wrong = () => execFileSync("openssl", [...verify, "other.example", "-CAfile", ca, leaf], { stdio: "pipe" });
  expect(wrong).toThrow("hostname mismatch");
});

it("serves a host name that is longer than a common name may be", async () => {
  const authority = new CertificateAuthority({ keyring: keyring("a".repeat(32)), clock: systemClock });
  const host = `${"a".repeat(60)}.${"b".repeat(60)}.example.com`;
  const { certificate } = await handshake(authority, authority.certificates, host);
  expect(certificate.checkHost(host)).toBe(host);
});

it("is the same authority on every node with the same secret, and another one elsewhere", async () => {
  const [one, two] = [1, 2].map(
    () => new CertificateAuthority({ keyring: keyring("a".repeat(32)), clock: systemClock }),
  ) as [CertificateAuthority, CertificateAuthority];
  expect((await handshake(one, two.certificates)).isAuthorized).toBe(true);
  const other = new CertificateAuthority({ keyring: keyring("b".repeat(32)), clock: systemClock });
  await expect(handshake(one, other.certificates)).rejects.toThrow("unable to verify");
});

it("stays trusted by running processes while the secret is being replaced", async () => {
  const [before, during, after] = [
    keyring("a".repeat(32)),
    keyring("b".repeat(32), "a".repeat(32)),
    keyring("b".repeat(32)),
  ].map((keys) => new CertificateAuthority({ keyring: keys, clock: systemClock })) as CertificateAuthority[];
  expect((await handshake(during as CertificateAuthority, before?.certificates as string)).isAuthorized).toBe(true);
  expect((await handshake(after as CertificateAuthority, during?.certificates as string)).isAuthorized).toBe(true);
});

it("reuses a host's certificate until a week before its end", async () => {
  const clock = new FakeClock();
  const authority = new CertificateAuthority({ keyring: keyring("a".repeat(32)), clock });
  const first = authority.contextFor(HOST);
  await clock.advance(22 * 86_400_000);
  expect(authority.contextFor(HOST)).toBe(first);
  await clock.advance(2 * 86_400_000);
  expect(authority.contextFor(HOST)).not.toBe(first);
});

/** Connects a client that trusts only `ca`. */
async function handshake(authority: CertificateAuthority, ca: string, host = HOST) {
  const [here, there] = duplexPair();
  const server = new TLSSocket(here, { isServer: true, secureContext: authority.contextFor(host) });
  server.on("error", () => {});
  const client = connect({
    socket: there,
    servername: host,
    ca: ca.split(/(?<=-----END CERTIFICATE-----\n)/),
  });
  onTestFinished(() => void client.destroy());
  await once(client, "secureConnect");
  const { raw } = client.getPeerCertificate();
  return { isAuthorized: client.authorized, certificate: new X509Certificate(raw) };
}
