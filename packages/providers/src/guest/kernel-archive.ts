/** One file of an initramfs; parents come before their content. */
export type ArchiveEntry =
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "file"; readonly path: string; readonly bytes: Uint8Array }
  | { readonly kind: "device"; readonly path: string; readonly major: number; readonly minor: number };

const DIRECTORY = 0o040755;
const PROGRAM = 0o100755;
const CHARACTER_DEVICE = 0o020600;
const TRAILER = "TRAILER!!!";

/** A cpio archive in the format that kernels unpack ("newc"). The same entries produce the same bytes. */
export function kernelArchive(entries: readonly ArchiveEntry[]): Buffer {
  const members = entries.map((entry, index) => member(entry.path, index + 1, contentOf(entry)));
  return Buffer.concat([...members, member(TRAILER, 0, { mode: 0 })]);
}

interface Content {
  readonly mode: number;
  readonly bytes?: Uint8Array;
  readonly device?: readonly [number, number];
}

function contentOf(entry: ArchiveEntry): Content {
  if (entry.kind === "directory") return { mode: DIRECTORY };
  if (entry.kind === "file") return { mode: PROGRAM, bytes: entry.bytes };
  return { mode: CHARACTER_DEVICE, device: [entry.major, entry.minor] };
}

function member(name: string, inode: number, { mode, bytes = Buffer.alloc(0), device = [0, 0] }: Content): Buffer {
  const owner = [0, 0];
  const [links, modifiedAt, checksum] = [1, 0, 0];
  const fields = [inode, mode, ...owner, links, modifiedAt, bytes.length, 0, 0, ...device, name.length + 1, checksum];
  const header = `070701${fields.map((field) => field.toString(16).padStart(8, "0")).join("")}${name}\0`;
  return Buffer.concat([padded(Buffer.from(header, "latin1")), padded(bytes)]);
}

function padded(bytes: Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)]);
}
