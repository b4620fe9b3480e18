import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { systemEnv } from "../../cluster/namespaces.ts";

/** Services of the node's host, on its loopback and at an abstract Unix socket, which no sandbox may reach. */
export class HostServices implements Disposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(namespace: string): Promise<HostServices> {
    const program = fileURLToPath(new URL("host-services-program.ts", import.meta.url));
    const child = fork(program, [], {
      execPath: "/usr/bin/nsenter",
      execArgv: [`--net=/run/netns/${namespace}`, process.execPath],
      env: systemEnv,
    });
    await once(child, "message");
    return new HostServices(child);
  }

  /** How many connections and datagrams reached them. */
  async visits(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("visits");
    const [visits] = await answered;
    return visits as number;
  }

  [Symbol.dispose](): void {
    if (this.#child.connected) this.#child.disconnect();
  }
}
