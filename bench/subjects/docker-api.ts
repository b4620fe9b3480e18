import { Agent } from "node:http";
import { benchDaemon, IMAGE, WAIT } from "../docker/bench-image.ts";
import { sendJson } from "../send-json.ts";
import type { SubjectDefinition } from "../subject.ts";

export const subject: SubjectDefinition = {
  name: "docker-api",
  title: "create and start a container over the Docker Engine's API, without the docker client",
  async open(workspace) {
    const { host } = await benchDaemon(workspace);
    const agent = new Agent({ keepAlive: true });
    workspace.defer(() => agent.destroy());
    const call = <Answer>(method: string, path: string, body?: object) =>
      sendJson<Answer>(`http://docker${path}`, { socketPath: host.replace("unix://", ""), agent, method }, body);
    return {
      async createToReady() {
        const config = { Image: IMAGE, Cmd: WAIT, OpenStdin: true, HostConfig: { NetworkMode: "none" } };
        const startedAt = performance.now();
        const { Id } = await call<{ Id: string }>("POST", "/containers/create", config);
        await call("POST", `/containers/${Id}/start`);
        const tookMs = performance.now() - startedAt;
        await call("DELETE", `/containers/${Id}?force=true`);
        return tookMs;
      },
    };
  },
};
