import { getCACertificates } from "node:tls";
import { SandboxError, type SandboxFiles } from "@sandpiper/core";
import type { Anchor } from "./certificate-authority.ts";
import { AUTHORITY_FILE, BUNDLE_FILE } from "./trust-variables.ts";

/** The lists of trusted authorities of distributions. */
const SYSTEM_BUNDLES = [
  "/etc/ssl/certs/ca-certificates.crt", // Debian, Alpine, Arch
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
  "/etc/ssl/ca-bundle.pem", // SUSE
  "/etc/ssl/cert.pem",
];

/** Where the programs that write these lists look for more authorities: an upgrade of packages keeps ours. */
const ANCHORS = [
  { directory: "/usr/local/share/ca-certificates", file: "sandpiper.crt" },
  { directory: "/etc/pki/ca-trust/source/anchors", file: "sandpiper.pem" },
];

/** Where OpenSSL looks for one file for each authority, also without variables. */
const HASHED = "/etc/ssl/certs";

/** Larger ones are no list of authorities. */
const MAX_BUNDLE_BYTES = 4 * 1024 * 1024;

type Files = Pick<SandboxFiles, "stat" | "read" | "write">;

/** Makes the programs of a sandbox trust the authority. Does nothing if they already do, as after a restore. */
export async function installAuthority(files: Files, anchors: readonly Anchor[]): Promise<void> {
  const certificates = anchors.map(({ certificate }) => certificate).join("");
  if ((await readText(files, AUTHORITY_FILE)) === certificates) return;
  const write = (path: string, content: string) =>
    files.write(path, Buffer.from(content), { mode: 0o644, owner: "0:0" });
  let own: string | undefined;
  for (const path of SYSTEM_BUNDLES) {
    const content = await readText(files, path);
    if (content === undefined) continue;
    const extended = withAuthority(content, certificates);
    own ??= extended;
    await write(path, extended).catch(unlessReadOnly);
  }
  for (const { directory, file } of ANCHORS) {
    const isDirectory = (await kindOf(files, directory)) === "directory";
    if (isDirectory) await write(`${directory}/${file}`, certificates).catch(unlessReadOnly);
  }
  if ((await kindOf(files, HASHED)) === "directory") {
    for (const { hash, certificate } of anchors) {
      await write(`${HASHED}/${hash}.0`, certificate).catch(unlessReadOnly);
    }
  }
  // Programs that bring their own list would otherwise trust fewer authorities than before.
  await write(BUNDLE_FILE, own ?? withAuthority(getCACertificates("bundled").join("\n"), certificates));
  // Last, because it marks the end.
  await write(AUTHORITY_FILE, certificates);
}

/** The programs of an image may be read-only; then the variables must do. */
function unlessReadOnly(thrown: unknown): void {
  if (SandboxError.from(thrown).code !== "permission_denied") throw thrown;
}

function withAuthority(bundle: string, certificates: string): string {
  if (bundle.includes(certificates)) return bundle;
  return `${bundle.trimEnd()}\n${certificates}`;
}

/** Undefined if there is no such file, or if it is a link: then another path names the file itself. */
async function readText(files: Files, path: string): Promise<string | undefined> {
  if ((await kindOf(files, path)) !== "file") return undefined;
  const chunks: Uint8Array[] = [];
  for await (const chunk of files.read(path, { lengthBytes: MAX_BUNDLE_BYTES })) chunks.push(chunk);
  return Buffer.concat(chunks).toString("latin1");
}

async function kindOf(files: Files, path: string): Promise<string | undefined> {
  try {
    return (await files.stat(path, { follow: false })).kind;
  } catch (thrown) {
    if (SandboxError.from(thrown).code === "not_found") return undefined;
    throw thrown;
  }
}
