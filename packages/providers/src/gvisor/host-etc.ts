import { lstat, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { ImageEntry } from "./image-entry.ts";

/**
 * What programs of /usr need from /etc: public, and the same for every user of the machine. Left out on purpose: accounts
 * and passwords, keys, host names and ids, and every file where people put tokens (environment, profile.d, gitconfig,
 * npmrc, pip.conf, ssh, apt).
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

/** More than any of these files has; a larger one is not what it seems. */
const MAX_FILE_BYTES = 8 * 1024 * 1024;

/** The allowed part of the host's /etc, as entries of an image. */
export async function hostEtcEntries(etc = "/etc"): Promise<ImageEntry[]> {
  const entries: ImageEntry[] = [];
  for (const parent of PARENTS) {
    for (const name of await readdir(join(etc, parent)).catch(() => [])) {
      const path = join(parent, name);
      if (isAllowed(path)) entries.push(...(await collect(etc, path)));
    }
  }
  return entries;
}

function isAllowed(path: string): boolean {
  return ALLOWED.some((allowed) => (allowed.endsWith("*") ? path.startsWith(allowed.slice(0, -1)) : path === allowed));
}

/** Only what every user of the machine may read, whatever the list says. */
async function collect(etc: string, path: string): Promise<ImageEntry[]> {
  const source = join(etc, path);
  const target = join("etc", path);
  const info = await lstat(source);
  if (info.isSymbolicLink()) return [{ kind: "link", path: target, target: await readlink(source) }];
  const mode = info.mode & 0o777;
  if (info.isDirectory() && (mode & 0o005) === 0o005) {
    const names = await readdir(source);
    const below = await Promise.all(names.map((name) => collect(etc, join(path, name))));
    return [{ kind: "directory", path: target, mode: 0o755 }, ...below.flat()];
  }
  if (!info.isFile() || (mode & 0o004) === 0 || info.size > MAX_FILE_BYTES) return [];
  const version = `${info.size}-${info.mtimeMs}-${info.ino}`;
  return [{ kind: "copy", path: target, source, mode: mode & 0o755, version }];
}
