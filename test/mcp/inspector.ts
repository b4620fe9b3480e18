import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";

const program = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);
const LIMIT_MS = 60_000;

export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

/** MCP Inspector's command line; each call is its own session. */
export class Inspector {
  /** The server: an address with headers, or a command. */
  readonly #target: readonly string[];
  /** Inspector stores its known servers here. */
  readonly #home = sharedDirectory("inspector");

  constructor(target: readonly string[]) {
    this.#target = target;
  }

  async toolNames(): Promise<string[]> {
    const { tools } = (await this.#ask(["--method", "tools/list"])) as { tools: { name: string }[] };
    return tools.map(({ name }) => name);
  }

  async call(tool: string, args: Readonly<Record<string, string | number | boolean>>): Promise<ToolAnswer> {
    const given = Object.entries(args).flatMap(([name, value]) => ["--tool-arg", `${name}=${value}`]);
    return (await this.#ask(["--method", "tools/call", "--tool-name", tool, ...given])) as ToolAnswer;
  }

  async #ask(args: readonly string[]): Promise<unknown> {
    const { stdout } = await promisify(execFile)(process.execPath, [program, "--cli", ...this.#target, ...args], {
      env: { ...process.env, HOME: this.#home },
      timeout: LIMIT_MS,
      maxBuffer: 16 * 1024 * 1024,
    });
    return JSON.parse(stdout);
  }
}
