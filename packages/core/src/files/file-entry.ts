import type { FileEntryBody, FileInfo } from "@sandpiper/protocol";

export interface FileEntry extends Readonly<Omit<FileEntryBody, "modifiedAt" | "target">> {
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
