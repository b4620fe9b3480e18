import { randomBytes } from "node:crypto";
import { join } from "node:path";

/** No key contains this character, so an object "a" and the folder of an object "a/b" never meet. */
const OBJECT_MARK = "%";
const CURRENT = "current.";
const DATA = "data.";

/** Where new objects are put together; no key leads there. */
export const STAGING = `staging${OBJECT_MARK}${OBJECT_MARK}`;

export function createTag(): string {
  return randomBytes(12).toString("hex");
}

export function objectPath(root: string, key: string): string {
  return join(root, `${key}${OBJECT_MARK}`);
}

/** The last part of an object's key, for the name of its directory; undefined for other directories. */
export function objectName(directoryName: string): string | undefined {
  return directoryName.endsWith(OBJECT_MARK) ? directoryName.slice(0, -OBJECT_MARK.length) : undefined;
}

/** Its name, and nothing else, says which version counts. */
export function currentPath(directory: string, tag: string): string {
  return join(directory, `${CURRENT}${tag}`);
}

export function dataPath(directory: string, tag: string): string {
  return join(directory, `${DATA}${tag}`);
}

export function currentTag(names: readonly string[]): string | undefined {
  return names.find((name) => name.startsWith(CURRENT))?.slice(CURRENT.length);
}
