import { Engine } from "./engine.ts";
import { findEndpoint, thisMachine } from "./find-endpoint.ts";
import type { KillContainersPlan } from "./kill-containers-target.ts";
import { label } from "./labels.ts";

// A program that kills a sandbox's running containers. The lease guard starts it for an engine with TLS.
const [, , id = "", text = "{}"] = process.argv;
const { engineUrl, env, homeDirectory, home }: KillContainersPlan = JSON.parse(text);
using engine = await Engine.connect(await findEndpoint(engineUrl, { ...thisMachine(), env, homeDirectory }));
const filters = { label: [`${label.sandbox}=${id}`, `${label.home}=${home}`] };
const list = () => engine.call("list containers", (docker) => docker.listContainers({ filters }));
for (const { Id } of await list()) {
  await engine.find(`kill container ${Id}`, (docker) => docker.getContainer(Id).kill({ signal: "SIGKILL" }));
}
if ((await list()).length > 0) process.exitCode = 1;
