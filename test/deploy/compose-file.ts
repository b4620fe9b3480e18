import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "./dockerfile.ts";

export interface ComposeService {
  readonly build?: { readonly target: "node" | "store" };
  readonly privileged?: boolean;
  readonly cgroup?: string;
  readonly security_opt?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly networks?: { readonly default: { readonly ipv4_address: string } };
  readonly ports?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** `<name>:<path in the container>`, with `:ro` for a read-only one. */
  readonly volumes: readonly string[];
}

/** The services of deploy/compose/compose.yaml, with the values of an `.env` file. */
export function readCompose(values: Readonly<Record<string, string>>): Readonly<Record<string, ComposeService>> {
  const text = readFileSync(join(root, "deploy/compose/compose.yaml"), "utf8");
  const filled = text.replace(/\$\{([A-Z_]+):\?[^}]*\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`compose.yaml needs a value for ${name}`);
    return value;
  });
  return parse(filled, { merge: true }).services;
}
