import { SandboxError, type SandboxFiles } from "@sandpiper/core";
import { expect, it } from "vitest";
import { installAuthority } from "./install-authority.ts";
import { AUTHORITY_FILE, BUNDLE_FILE } from "./trust-variables.ts";

const OURS = "-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n";
const THEIRS = "-----BEGIN CERTIFICATE-----\ntheirs\n-----END CERTIFICATE-----\n";
const DEBIAN = "/etc/ssl/certs/ca-certificates.crt";

/** Files by path; a path that ends in a slash is a directory, and null a link. */
function guest(content: Record<string, string | null>, options: { readonly readOnly?: string } = {}) {
  const entries = new Map(Object.entries(content));
  const written: string[] = [];
  const missing = (path: string) => new SandboxError("no_such_file", { message: `no such file: ${path}` });
  const files = {
    async stat(path: string) {
      if (entries.has(`${path}/`)) return { kind: "directory" };
      const found = entries.get(path);
      if (found === undefined) throw missing(path);
      return { kind: found === null ? "symlink" : "file" };
    },
    async *read(path: string) {
      yield Buffer.from(entries.get(path) ?? "");
    },
    async write(path: string, bytes: Uint8Array) {
      if (options.readOnly !== undefined && path.startsWith(options.readOnly)) {
        throw new SandboxError("not_permitted", {
          message: `cannot write ${path}: Read-only file system (os error 30)`,
        });
      }
      written.push(path);
      entries.set(path, Buffer.from(bytes).toString());
      return { sizeBytes: bytes.length };
    },
  };
  return { files: files as unknown as SandboxFiles, entries, written };
}

it("adds the authority to the list of the image, and keeps the authorities there", async () => {
  const { files, entries } = guest({
    [DEBIAN]: THEIRS,
    "/usr/local/share/ca-certificates/": "",
    "/etc/ssl/certs/": "",
  });
  await installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }]);
  expect(entries.get(DEBIAN)).toBe(THEIRS + OURS);
  expect(entries.get(BUNDLE_FILE)).toBe(THEIRS + OURS);
  expect(entries.get(AUTHORITY_FILE)).toBe(OURS);
  expect(entries.get("/usr/local/share/ca-certificates/sandpiper.crt")).toBe(OURS);
  expect(entries.get("/etc/ssl/certs/0a1b2c3d.0")).toBe(OURS);
});

it("writes nothing if the authority is inside, as after a restore", async () => {
  const { files, written } = guest({ [DEBIAN]: THEIRS });
  await installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }]);
  const before = written.length;
  await installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }]);
  expect(written).toHaveLength(before);
});

it("leaves links alone, and uses the usual authorities in an image without any", async () => {
  const { files, entries } = guest({ "/etc/ssl/cert.pem": null });
  await installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }]);
  expect(entries.get("/etc/ssl/cert.pem")).toBeNull();
  expect(entries.get(BUNDLE_FILE)?.split("-----BEGIN").length).toBeGreaterThan(50);
  expect(entries.get(BUNDLE_FILE)?.endsWith(OURS)).toBe(true);
});

it("works in an image whose programs are read-only", async () => {
  const { files, entries } = guest({ [DEBIAN]: THEIRS, "/usr/local/share/ca-certificates/": "" }, { readOnly: "/usr" });
  await installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }]);
  expect(entries.get(BUNDLE_FILE)).toBe(THEIRS + OURS);
});

it("fails if the node's own files cannot be written", async () => {
  const { files } = guest({}, { readOnly: "/etc" });
  await expect(installAuthority(files, [{ certificate: OURS, hash: "0a1b2c3d" }])).rejects.toThrow(
    "Read-only file system",
  );
});
