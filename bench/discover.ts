import { readdir } from "node:fs/promises";

/** Imports every module of a folder, so that a new file adds a benchmark or a subject. */
export async function discover<T>(folder: URL): Promise<{ name: string; module: T }[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts")).sort();
  return Promise.all(
    files.map(async (file) => ({
      name: file.slice(0, -".ts".length),
      module: (await import(new URL(file, folder).href)) as T,
    })),
  );
}
