import { randomBytes } from "node:crypto";
import { join } from "node:path";

/** No key contains this character, so the directory of object "a" and the folder of object "a/b" have different names. */
const OBJECT_MARK = "%";
const CURRENT = "current.";
const DATA = "data.";

/** Holds new objects until they are complete; no key maps to this path. */
export const STAGING = `staging${OBJECT_MARK}${OBJECT_MARK}`;

export function createTag(): string {
  return randomBytes(12).toString("hex");
}

export function objectPath(root: string, key: string): string {
  return join(root, `${key}${OBJECT_MARK}`);
}

/** The last part of the key of the object in this directory; undefined if the directory is not an object. */
export function objectName(directoryName: string): string | undefined {
  return directoryName.endsWith(OBJECT_MARK) ? directoryName.slice(0, -OBJECT_MARK.length) : undefined;
}

/** The name of this empty file selects the current version. */
export function currentPath(directory: string, tag: string): string {
  return join(directory, `${CURRENT}${tag}`);
}

export function dataPath(directory: string, tag: string): string {
  return join(directory, `${DATA}${tag}`);
}

export function currentTag(names: readonly string[]): string | undefined {
  return names.find((name) => name.startsWith(CURRENT))?.slice(CURRENT.length);
}
