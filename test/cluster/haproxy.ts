import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { eventually } from "../../packages/providers/src/docker/testing/eventually.ts";
import { systemEnv } from "./namespaces.ts";

export interface HaproxyOptions {
  readonly configFile: string;
  /** The path of its `stats socket`; once that answers, HAProxy listens on all its ports. */
  readonly adminSocket: string;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Wraps its command line, for example to run it in a network namespace. */
  readonly enter?: ((argv: readonly string[]) => readonly [string, ...string[]]) | undefined;
}

/** A real HAProxy in the foreground. */
export class Haproxy {
  readonly #adminSocket: string;

  private constructor(adminSocket: string) {
    this.#adminSocket = adminSocket;
  }

  static async start(options: HaproxyOptions): Promise<Haproxy> {
    const { configFile, adminSocket, env, enter = ([program = "", ...args]) => [program, ...args] } = options;
    const [program, ...args] = enter(["haproxy", "-db", "-f", configFile]);
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...systemEnv, ...env } });
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-4000);
    });
    const haproxy = new Haproxy(adminSocket);
    await eventually(async () => hasEnded(child) || (await haproxy.#isUp()), "HAProxy does not answer");
    if (hasEnded(child)) throw new Error(`HAProxy did not start: ${stderr}`);
    return haproxy;
  }

  /** Sends one line to its admin socket and returns the answer. */
  async command(line: string): Promise<string> {
    const socket = connect(this.#adminSocket).setEncoding("utf8");
    await once(socket, "connect");
    socket.end(`${line}\n`);
    return (await socket.toArray()).join("").trim();
  }

  /** Each server with its state: UP, DOWN, DRAIN, MAINT or a step between them. */
  async servers(): Promise<ReadonlyMap<string, string>> {
    const [header = "", ...rows] = (await this.command("show stat")).replace(/^# /, "").split("\n");
    const columns = header.split(",");
    const at = (row: string, column: string) => row.split(",")[columns.indexOf(column)] ?? "";
    const servers = rows.filter((row) => at(row, "type") === "2");
    return new Map(servers.map((row) => [at(row, "svname"), at(row, "status")]));
  }

  async #isUp(): Promise<boolean> {
    return this.command("show info").then(
      (answer) => answer !== "",
      () => false,
    );
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
