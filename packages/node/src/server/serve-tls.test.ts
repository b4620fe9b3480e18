import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "./serve.ts";

const openssl = process.env["OPENSSL"] ?? "openssl";
const hasOpenssl = spawnSync(openssl, ["version"]).status === 0;

describe.skipIf(!hasOpenssl)("serve with TLS (needs openssl to make a certificate)", () => {
  let directory: string;
  const file = (name: string) => join(directory, name);
  const make = (name: string) => {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", file(`${name}.key`), "-out", file(`${name}.crt`)];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    execFileSync(openssl, ["req", ...kind, ...subject, ...files], { stdio: "ignore" });
  };
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "sandpiper-tls-"));
    make("one");
    make("other");
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it("answers over HTTPS with the configured certificate", async () => {
    const app = { fetch: () => new Response("secret") };
    const tls = { certFile: file("one.crt"), keyFile: file("one.key") };
    const serving = await serve({ app, host: "127.0.0.1", port: 0, tls });
    try {
      expect(serving.url).toMatch(/^https:/);
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      get(serving.url, { ca: readFileSync(file("one.crt")), agent: false }, async (response) =>
        resolve(String(await response.toArray())),
      ).on("error", reject);
      expect(await promise).toBe("secret");
    } finally {
      await serving.close({ graceMs: 0 });
    }
  });

  it("refuses a key that does not match the certificate", async () => {
    const tls = { certFile: file("one.crt"), keyFile: file("other.key") };
    const starting = serve({ app: { fetch: () => new Response() }, host: "127.0.0.1", port: 0, tls });
    await expect(starting).rejects.toMatchObject({ reason: "bad_tls_files" });
  });
});
