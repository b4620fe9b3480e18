import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { systemEnv } from "./namespaces.ts";

export interface HaproxyOptions {
  readonly configFile: string;
  /** Where its `stats socket` is; once that answers, it listens everywhere. */
  readonly adminSocket: string;
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Turns its command line into one that runs somewhere else. */
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
    const ended = once(child, "exit");
    while (!(await haproxy.#isUp())) {
      if (hasEnded(child)) throw new Error(`HAProxy did not start: ${stderr}`);
      await Promise.race([sleep(20), ended]);
    }
    return haproxy;
  }

  /** Sends one line to its admin socket and gives the answer, as `socat` would. */
  async command(line: string): Promise<string> {
    const socket = connect(this.#adminSocket).setEncoding("utf8");
    await once(socket, "connect");
    socket.end(`${line}\n`);
    return (await socket.toArray()).join("").trim();
  }

  /** Each server with what HAProxy thinks of it: UP, DOWN, DRAIN, MAINT and steps between them. */
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
