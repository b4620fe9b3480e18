import type { CreateSandboxBody } from "@sandpiper/protocol";
import type { Verb } from "../command/verb.ts";
import { containerFrom, containerOptions, namingOptions, splitContainer } from "../options/container-options.ts";
import { networkFrom } from "../options/network-options.ts";
import {
  commandFrom,
  commandOptions,
  onFailureOption,
  ownFrom,
  ownOptions,
  secretOption,
  secretsFrom,
  shapeFrom,
  shapeOptions,
} from "../options/sandbox-options.ts";
import {
  checkpointsOption,
  defaultLanguageOption,
  idleTimeoutOption,
  quietOption,
  sandboxJsonOption,
} from "../options/shared-options.ts";
import { parseDuration, parsePolicy } from "../options/values.ts";
import { Progress, progressOf } from "../output/progress.ts";
import { PullView, pullViewOf } from "../output/pull-view.ts";
import { showResult } from "../output/show.ts";
import { requireNode } from "../target/find-node.ts";

export const createVerb: Verb = {
  name: "create",
  summary: "create a sandbox on the node and print its ID",
  options: [
    ...ownOptions,
    ...shapeOptions,
    ...commandOptions,
    ...containerOptions,
    defaultLanguageOption,
    idleTimeoutOption,
    checkpointsOption,
    onFailureOption,
    secretOption,
    sandboxJsonOption,
    quietOption,
  ],
  details: "--env, --cwd and --user set the defaults for all commands of the sandbox.",
  examples: [
    "sandpiper create --name build --memory 1024 --ttl 1h",
    "sandpiper create --network allow=@pypi,@github",
    "sandpiper create --provider docker --image node:24 --network bridge --publish 3000",
    'id=$(sandpiper create) && sandpiper exec "$id" -- make',
  ],
  async run(arguments_) {
    const body = {
      ...shapeFrom(arguments_),
      ...ownFrom(arguments_),
      ...splitContainer(containerFrom(arguments_)),
      ...commandFrom(arguments_),
      network: await networkFrom(arguments_),
      language: arguments_.get("language"),
      idleTimeoutMs: parseDuration(arguments_, "idle-timeout"),
      checkpointPolicy: await parsePolicy(arguments_, "checkpoints"),
      secrets: secretsFrom(arguments_),
      onFailure: arguments_.get("on-failure") as CreateSandboxBody["onFailure"],
    };
    const client = await requireNode();
    using progress = new Progress("creating the sandbox", progressOf(arguments_));
    using view = new PullView({ ...pullViewOf(arguments_), onBegin: () => progress[Symbol.dispose]() });
    const { id, info } = await namingOptions(() => client.sandboxes.create({ ...body, onProgress: view.add }));
    view[Symbol.dispose]();
    progress[Symbol.dispose]();
    await showResult(arguments_, { json: info, lines: [id] });
  },
};
