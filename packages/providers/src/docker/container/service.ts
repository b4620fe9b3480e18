import { type InstanceSpec, SandboxError, type ServiceCommand } from "@sandpiper/core";
import { type Labels, label } from "../engine/labels.ts";
import type { EngineImage } from "../image/image.ts";
import { AGENT_PROGRAM } from "../storage/agent-volume.ts";
import { userOf } from "./image-user.ts";

const DEFAULT_RESTART = "on-failure";

/** Keeps the image's own command for a container that starts again or is restored; none without a service. */
export function serviceLabels(spec: InstanceSpec, image: EngineImage): Labels {
  if (spec.container?.service === undefined) return {};
  // A checkpoint's image runs the agent, and has the original command in this label.
  const { argv, cwd, user } = parseCommand(image.labels) ?? image.command;
  if (argv.length > 0) return { [label.command]: JSON.stringify({ argv, cwd, user }) };
  throw new SandboxError("image_has_no_command", {
    message: `sandbox ${spec.id} cannot run the command of image ${image.reference}: the image has no entrypoint and no command`,
    hint: "omit container.service, and start a command yourself; or use another image",
    details: { image: image.reference },
  });
}

/** The service of a container with these labels: the image's command, which the agent's program supervises. */
export function serviceOf({ container }: InstanceSpec, labels: Labels): ServiceCommand | undefined {
  const command = parseCommand(labels);
  if (container?.service === undefined || command === undefined) return undefined;
  const { restart = DEFAULT_RESTART } = container.service;
  return {
    argv: [AGENT_PROGRAM, "--service", restart, "--", ...command.argv],
    cwd: command.cwd,
    // Root by number, because an image may have no names of users.
    user: userOf(command.user) || "0",
  };
}

/** Undefined without the label, or with a value that Sandpiper did not write: an image may carry any label. */
function parseCommand({ [label.command]: text = "" }: Labels): ServiceCommand | undefined {
  try {
    const { argv, cwd, user } = JSON.parse(text) as Partial<ServiceCommand>;
    const isList = Array.isArray(argv) && argv.length > 0 && argv.every((word) => typeof word === "string");
    return isList && typeof cwd === "string" && typeof user === "string" ? { argv, cwd, user } : undefined;
  } catch {
    return undefined;
  }
}
