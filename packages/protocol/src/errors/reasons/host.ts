// biome-ignore-all format: one row per line makes it a table
import type { ErrorReasonEntry } from "../error-reason.ts";

export const hostReasons = {
  agent_missing: { code: "failed_precondition", meaning: "The agent, or another program of Sandpiper, is missing.", hint: "run `npm run setup` in Sandpiper's directory, which builds it" },
  cgroup_busy: { code: "unavailable", meaning: "A cgroup could not be removed because its processes do not end.", hint: "they may be waiting for a disk; look at them with `ps`, and retry", details: { path: "string", processes: "number[]" } },
  cgroups_missing: { code: "failed_precondition", meaning: "The host lacks cgroups with the controllers that sandboxes need.", hint: "run `npm run setup` in Sandpiper's directory, which mounts them or names what is missing" },
  guard_missing: { code: "unavailable", meaning: "The lease guard does not stay running.", hint: "run the guard by hand to see its error" },
  instance_claimed: { code: "failed_precondition", meaning: "Another program has adopted the instance.", hint: "use it through that program, or end that program first; or remove the instance by its id" },
  instance_ended: { code: "gone", meaning: "The instance has ended.", hint: "create a new sandbox" },
  instance_exists: { code: "already_exists", meaning: "An instance with this id already exists.", hint: "use a new id, or remove the old instance first" },
  instance_lost: { code: "gone", meaning: "The provider no longer has the instance of the sandbox.", hint: "create a new sandbox" },
  instance_owned: { code: "failed_precondition", meaning: "Another running program owns the instance.", hint: "use it through that program, or end that program first; or remove the instance by its id" },
  instance_record_damaged: { code: "data_loss", meaning: "The record of an instance cannot be read.", hint: "remove the instance by its id" },
  mock_fault: { code: "unavailable", meaning: "A test made the mock provider fail." },
  no_such_instance: { code: "not_found", meaning: "The instance to adopt does not exist.", hint: "list the instances of this host, or create a new one" },
  not_linux: { code: "failed_precondition", meaning: "The provider needs Linux.", hint: "use a Linux machine" },
  not_root: { code: "failed_precondition", meaning: "The provider needs root.", hint: "run it again as root: sudo env \"PATH=$PATH\" …" },
  processes_left: { code: "unavailable", meaning: "Processes of a local instance do not end.", hint: "look at them with `ps`, and retry" },
  reserve_reached: { code: "resource_exhausted", meaning: "The host has less disk, memory or pids free than the node keeps in reserve, so the node starts nothing new.", hint: "free some on the host or end sandboxes, and retry; the setting reserve sets how much the node keeps free", details: { resource: "string", free: "number", reserve: "number", unit: "string" } },
  relative_state_directory: { code: "invalid_argument", meaning: "SANDPIPER_HOME is not an absolute path.", hint: "set it to an absolute path, or unset it to use ~/.sandpiper" },
  runsc_missing: { code: "failed_precondition", meaning: "The host has no usable runsc.", hint: "run `npm run setup` in Sandpiper's directory" },
  unusable_state_directory: { code: "failed_precondition", meaning: "The path of the state directory is too long, or contains a comma.", hint: "set SANDPIPER_HOME to another, shorter path" },
} as const satisfies Record<string, ErrorReasonEntry>;
