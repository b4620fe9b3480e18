import type { FileInfo } from "@sandpiper/protocol";

export interface FileEntry {
  /** Absolute from stat; relative to the listed directory from list. */
  readonly path: string;
  readonly kind: FileInfo["kind"];
  readonly sizeBytes: number;
  /** Permission bits, 0…0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedAt: Date;
  /** Symlinks only: where it points. */
  readonly target?: string;
}

/** One entry of a directory, as listDir answers it. */
export interface DirEntry {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly sizeBytes: number;
}

export function fileEntry(info: FileInfo): FileEntry {
  return {
    path: info.path,
    kind: info.kind,
    sizeBytes: info.size,
    mode: info.mode,
    uid: info.uid,
    gid: info.gid,
    modifiedAt: new Date(info.modified_at_ms),
    ...(info.target === undefined ? {} : { target: info.target }),
  };
}
