import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { ImageEntry } from "./image-entry.ts";

/**
 * The part of /etc that programs in /usr need: public, and the same for every user of the machine. It leaves out
 * accounts, passwords, keys, host names, ids, and every file where people put tokens (environment, profile.d,
 * gitconfig, npmrc, pip.conf, ssh, apt).
 */
const ALLOWED = `
  alternatives ca-certificates ca-certificates.conf crypto-policies debian_version emacs fonts gai.conf host.conf inputrc
  java java-* ld.so.cache ld.so.conf ld.so.conf.d locale.alias locale.conf localtime lsb-release magic magic.mime
  mime.types perl php pki/ca-trust pki/java pki/tls/certs pki/tls/cert.pem pki/tls/openssl.cnf protocols python* R
  redhat-release rpc ruby services shells ssl/certs ssl/openssl.cnf terminfo texmf timezone vim xattr.conf
`
  .trim()
  .split(/\s+/);
const PARENTS = ["", "pki", "pki/tls", "ssl"];

/** Larger than any of these files; a larger one is not what its name says. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;

/**
 * The allowed part of the host's /etc, as entries of an image. Synchronous, because some hundred small calls take 3 ms
 * this way.
 */
export function hostEtcEntries(etc = "/etc"): ImageEntry[] {
  return PARENTS.flatMap((parent) =>
    namesIn(join(etc, parent))
      .map((name) => join(parent, name))
      .filter(isAllowed)
      .flatMap((path) => collect(etc, path)),
  );
}

function isAllowed(path: string): boolean {
  return ALLOWED.some((allowed) => (allowed.endsWith("*") ? path.startsWith(allowed.slice(0, -1)) : path === allowed));
}

/** Every user of the machine must be able to read a file, even if the list names it. */
function collect(etc: string, path: string): ImageEntry[] {
  const source = join(etc, path);
  const target = join("etc", path);
  const info = lstatSync(source, { throwIfNoEntry: false });
  if (info === undefined) return [];
  if (info.isSymbolicLink()) return [{ kind: "link", path: target, target: readlinkSync(source) }];
  const mode = info.mode & 0o777;
  if (info.isDirectory() && (mode & 0o005) === 0o005) {
    const below = namesIn(source).flatMap((name) => collect(etc, join(path, name)));
    return [{ kind: "directory", path: target, mode: 0o755 }, ...below];
  }
  if (!info.isFile() || (mode & 0o004) === 0 || info.size > MAX_FILE_BYTES) return [];
  const version = `${info.size}-${info.mtimeMs}-${info.ino}`;
  return [{ kind: "copy", path: target, source, mode: mode & 0o755, version }];
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
