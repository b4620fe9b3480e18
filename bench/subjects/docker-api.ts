import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { benchDaemon, IMAGE, WAIT } from "../docker/bench-image.ts";
import type { Subject, SubjectDefinition } from "../subject.ts";

export const subject: SubjectDefinition = {
  name: "docker-api",
  title: "create and start a container over the Docker Engine's API, without the docker client",
  async open(workspace) {
    const { host } = await benchDaemon(workspace);
    return new DockerApi(host.replace("unix://", ""));
  },
};

class DockerApi implements Subject {
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  async createToReady(): Promise<number> {
    const config = { Image: IMAGE, Cmd: WAIT, OpenStdin: true, HostConfig: { NetworkMode: "none" } };
    const startedAt = performance.now();
    const { Id } = JSON.parse(await this.#call("POST", "/containers/create", config)) as { Id: string };
    await this.#call("POST", `/containers/${Id}/start`);
    const tookMs = performance.now() - startedAt;
    await this.#call("DELETE", `/containers/${Id}?force=true`);
    return tookMs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
  }

  #call(method: string, path: string, body?: object): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const headers = { "content-type": "application/json" };
    const sent = request({ socketPath: this.#socketPath, agent: this.#agent, method, path, headers }, (response) => {
      text(response).then((answer) => {
        if (response.statusCode !== undefined && response.statusCode < 300) resolve(answer);
        else reject(new Error(`${method} ${path}: ${answer}`));
      }, reject);
    });
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }
}
