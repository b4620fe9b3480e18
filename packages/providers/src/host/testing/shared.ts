import { mkdtempSync } from "node:fs";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach } from "vitest";

/** Shares a resource among the tests of a file, and disposes of it after them. */
export async function shared<T extends AsyncDisposable | Disposable>(creating: Promise<T>): Promise<T> {
  const stack = new AsyncDisposableStack();
  const resource = stack.use(await creating);
  afterAll(() => stack.disposeAsync());
  return resource;
}

/** A temporary directory that the tests of a file share. */
export function sharedDirectory(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), `sandpiper-${name}-`));
  afterAll(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A temporary directory that is empty at the start of each test. */
export function freshDirectory(name: string): string {
  const directory = sharedDirectory(name);
  beforeEach(async () => {
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory);
  });
  return directory;
}

/** Writes a program that is a shell script, with its directories. */
export async function putScript(path: string, script: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}
