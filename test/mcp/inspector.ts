import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const program = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
);
const LIMIT_MS = 60_000;

export interface InspectorOptions {
  /** The server: an address with headers, or a command. */
  readonly target: readonly string[];
  readonly env?: NodeJS.ProcessEnv | undefined;
}

export interface ToolAnswer {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly structuredContent: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

/** MCP Inspector's command line; each call is its own session. */
export class Inspector implements Disposable {
  readonly #options: InspectorOptions;
  /** Inspector stores its known servers here. */
  readonly #home = mkdtempSync(join(tmpdir(), "sandpiper-inspector-"));

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  async toolNames(): Promise<string[]> {
    const { tools } = (await this.#ask(["--method", "tools/list"])) as { tools: { name: string }[] };
    return tools.map(({ name }) => name);
  }

  async call(tool: string, args: Readonly<Record<string, string | number | boolean>>): Promise<ToolAnswer> {
    const given = Object.entries(args).flatMap(([name, value]) => ["--tool-arg", `${name}=${value}`]);
    return (await this.#ask(["--method", "tools/call", "--tool-name", tool, ...given])) as ToolAnswer;
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true });
  }

  async #ask(args: readonly string[]): Promise<unknown> {
    const { target, env = process.env } = this.#options;
    const { stdout } = await promisify(execFile)(process.execPath, [program, "--cli", ...target, ...args], {
      env: { ...env, HOME: this.#home },
      timeout: LIMIT_MS,
      maxBuffer: 16 * 1024 * 1024,
    });
    return JSON.parse(stdout);
  }
}
