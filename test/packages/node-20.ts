import { execFileSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { npmInstall } from "./packed-packages.ts";

const PACKAGE = `node-linux-${process.arch}`;
const VERSION = "20.8.1";

/** A Node.js 20: the machine's own, or one that is installed into a directory. */
export async function findNode20(directory: string): Promise<string> {
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((entry) => !entry.includes("node_modules"));
  const own = path.map((entry) => join(entry, "node")).find((program) => isNode20(program));
  if (own !== undefined) return own;
  writeFileSync(join(directory, "package.json"), JSON.stringify({ private: true }));
  await npmInstall(directory, [`${PACKAGE}@${VERSION}`]);
  return join(directory, "node_modules", PACKAGE, "bin/node");
}

function isNode20(program: string): boolean {
  return existsSync(program) && execFileSync(program, ["--version"], { encoding: "utf8" }).startsWith("v20.");
}
