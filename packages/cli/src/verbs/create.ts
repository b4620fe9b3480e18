import type { Verb } from "../command/verb.ts";
import { containerFrom, containerOptions } from "../options/container-options.ts";
import { parseDuration } from "../options/duration-option.ts";
import { parseEnv } from "../options/env-option.ts";
import { progressOf, quietOption } from "../options/quiet-option.ts";
import { commandOptions, ownFrom, ownOptions, shapeFrom, shapeOptions } from "../options/sandbox-options.ts";
import { print } from "../output/print.ts";

export const createVerb: Verb = {
  name: "create",
  usage: "[OPTIONS]",
  summary: "make a sandbox on the node and print its id",
  options: [
    ...ownOptions,
    ...shapeOptions,
    ...commandOptions,
    ...containerOptions,
    { name: "idle-timeout", value: "TIME", summary: "destroy it when it was not used for this time (never)" },
    { name: "json", summary: "print the whole sandbox as one JSON object" },
    quietOption,
  ],
  words: [],
  details: `
Variables, working directory and user are those of its commands unless they are given others.

Example:
  id=$(sandpiper create --name build --memory 1024 --ttl 1h)
  sandpiper exec "$id" -- make
  sandpiper create --provider docker --image node:24 --network bridge --publish 3000 --cache npm:/root/.npm`,
  async run(arguments_) {
    const { image, ...container } = containerFrom(arguments_) ?? {};
    const body = {
      ...shapeFrom(arguments_),
      ...ownFrom(arguments_),
      image,
      container: Object.keys(container).length === 0 ? undefined : container,
      env: parseEnv(arguments_.all("env"), process.env),
      cwd: arguments_.get("cwd"),
      user: arguments_.get("user"),
      idleTimeoutMs: parseDuration(arguments_, "idle-timeout"),
    };
    const { requireNode } = await import("../target/find-node.ts");
    const { Progress } = await import("../output/progress.ts");
    const client = await requireNode();
    const { PullView, pullViewOf } = await import("../output/pull-view.ts");
    using progress = new Progress("starting a sandbox", progressOf(arguments_));
    using view = new PullView({ ...pullViewOf(arguments_), onBegin: () => progress[Symbol.dispose]() });
    const { info } = await client.sandboxes.create({ ...body, onProgress: view.add });
    view[Symbol.dispose]();
    progress[Symbol.dispose]();
    await print(arguments_.has("json") ? `${JSON.stringify(info)}\n` : `${info.id}\n`);
    return 0;
  },
};
