import { readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../..");

/** One `COPY`; `from` is the stage that has the source, undefined for the build context. */
export interface Copy {
  readonly from: string | undefined;
  readonly source: string;
  readonly target: string;
}

/** The last instructions of a stage that decide what its containers see. */
export interface Stage {
  readonly copies: readonly Copy[];
  readonly packages: readonly string[];
  readonly directories: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** `ENTRYPOINT`, followed by `CMD`. */
  readonly command: readonly string[];
}

/** Reads a stage of deploy/compose/Dockerfile. */
export function readStage(name: string): Stage {
  const text = readFileSync(join(root, "deploy/compose/Dockerfile"), "utf8").replaceAll("\\\n", "");
  const stage = text.split(/^(?=FROM )/m).find((part) => part.split("\n")[0]?.endsWith(` AS ${name}`));
  if (stage === undefined) throw new Error(`the Dockerfile has no stage ${name}`);
  const lines = (instruction: string) =>
    stage
      .split("\n")
      .flatMap((line) => (line.startsWith(`${instruction} `) ? [line.slice(instruction.length + 1)] : []));
  return {
    copies: lines("COPY").map(copyOf),
    packages: lines("RUN").flatMap((line) =>
      (/apt-get install (.*?)(?:&&|$)/.exec(line)?.[1] ?? "").split(" ").filter((word) => /^[a-z]/.test(word)),
    ),
    directories: lines("RUN").flatMap((line) => /^mkdir -p (\S+)$/.exec(line)?.[1] ?? []),
    env: Object.fromEntries(lines("ENV").flatMap((line) => line.split(" ").map((pair) => pair.split("=")))),
    command: [...lines("ENTRYPOINT"), ...lines("CMD")].flatMap((line) => JSON.parse(line) as string[]),
  };
}

function copyOf(line: string): Copy {
  const words = line.split(" ");
  const from = words[0]?.startsWith("--from=") ? words.shift()?.slice("--from=".length) : undefined;
  const [source = "", target = ""] = words;
  return { from, source, target: target.endsWith("/") ? join(target, source.split("/").at(-1) ?? "") : target };
}
