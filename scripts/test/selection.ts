import { existsSync } from "node:fs";
import { join } from "node:path";

/** What `npm test -- PATTERN…` runs. */
export interface Selection {
  /** Paths of Vitest files. */
  readonly files: readonly string[];
  /** The arguments of each run of `cargo test`. */
  readonly cargo: readonly (readonly string[])[];
  /** Patterns that match no test. */
  readonly unmatched: readonly string[];
}

export interface Candidates {
  /** Every Vitest file, from the root of the repository. */
  readonly files: readonly string[];
  /** The root of the repository. */
  readonly directory: string;
}

/**
 * A pattern is a part of a Vitest file's path, the path of a Rust file or folder in `agent/`, or the name of a Rust test, which
 * has `::` in it. Without patterns, everything matches.
 */
export function selectTests(patterns: readonly string[], { files, directory }: Candidates): Selection {
  if (patterns.length === 0) return { files, cargo: [[]], unmatched: [] };
  const cargo = new Map(patterns.map((pattern) => [pattern, cargoArguments(pattern, directory)]));
  const matchesFile = (pattern: string) => files.some((file) => file.includes(pattern));
  return {
    files: files.filter((file) => patterns.some((pattern) => file.includes(pattern))),
    cargo: [...cargo.values()].filter((args) => args !== undefined),
    unmatched: patterns.filter((pattern) => cargo.get(pattern) === undefined && !matchesFile(pattern)),
  };
}

/** The options and filters that make cargo run only what the pattern names. */
function cargoArguments(pattern: string, directory: string): readonly string[] | undefined {
  if (pattern.includes("::")) return ["--", pattern];
  const path = pattern.replace(/\/+$/, "");
  if (path === "agent") return [];
  if (!path.startsWith("agent/")) return undefined;
  const found = [path, `${path}.rs`].find((candidate) => existsSync(join(directory, candidate)));
  const [, folder, rest = ""] = /^agent\/(src|tests)(?:\/(.*?))?(?:\.rs)?$/.exec(found ?? "") ?? [];
  if (folder === "tests") return ["--test", rest.split("/")[0] || "*"];
  if (folder === "src" && rest.startsWith("bin/")) return ["--bin", rest.slice("bin/".length)];
  if (folder === "src") return ["--lib", "--", ...moduleOf(rest)];
  return undefined;
}

function moduleOf(path: string): readonly string[] {
  const name = path.replace(/(^|\/)(mod|lib|main)$/, "").replaceAll("/", "::");
  return name === "" ? [] : [`${name}::`];
}
