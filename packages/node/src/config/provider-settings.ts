import { imageSchema } from "@sandpiper/protocol";
import { z } from "zod";
import { absolutePath, count, durationMs, optionalPath } from "./setting-types.ts";

const gitHost = z.string().refine((text) => URL.parse(`https://${text}`)?.host === text);
const engineName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/);

/** The settings of the providers. */
export const providerSettings = {
  docker: z
    .strictObject({
      url: z
        .string()
        .regex(/^(?:unix:\/\/\/|tcp:\/\/|https?:\/\/)\S+$/)
        .nullable()
        .default(null)
        .meta({
          description: "Address of the container engine.",
          allowed: "unix:///path, tcp://host:port, http:// or https://",
          shownDefault: "from DOCKER_HOST, the docker context or the usual sockets",
        }),
      image: imageSchema.default("python:3.13-slim").meta({
        description: "Image of containers that do not name one.",
        allowed: "a reference such as python:3.13-slim",
      }),
      allowedPaths: z.array(absolutePath).default([]).meta({
        description: "Directories on the engine's machine that sandboxes can mount, including their subdirectories.",
        allowed: "absolute paths",
      }),
      networks: z.array(engineName).default([]).meta({
        description:
          "Networks that sandboxes can join, for example bridge, which reaches the internet and the engine's machine. The default allows none.",
        allowed: "names of networks of the engine",
      }),
      hostPorts: z
        .array(z.string().regex(/^\d{1,5}(?:-\d{1,5})?$/))
        .default([])
        .meta({
          description:
            "Ports of the engine's machine that sandboxes can choose. Every key can use them. The default allows none: the engine chooses free ports.",
          allowed: "ports and ranges, such as 8080 and 9000-9100",
        }),
      hostAddresses: z
        .array(z.union([z.ipv4(), z.ipv6()]))
        .default([])
        .meta({
          description: "Addresses of the engine's machine at which sandboxes can publish ports, besides 127.0.0.1.",
          allowed: "IP addresses; 0.0.0.0 for all",
        }),
      runtime: engineName.nullable().default(null).meta({
        description: "The engine's runtime for containers.",
        allowed: "the name of a runtime of the engine",
        shownDefault: "runsc if the engine has it, otherwise the engine's default",
      }),
    })
    .prefault({}),
  qemu: z
    .strictObject({
      prepared: z.int().min(0).max(64).default(0).meta({
        description: "How many prepared virtual machines the provider keeps for each shape that sandboxes have used.",
        allowed: "a whole number from 0 to 64",
      }),
    })
    .prefault({}),
  firecracker: z
    .strictObject({
      kernel: optionalPath.meta({
        description: "Kernel of the virtual machines, unpacked or packed with LZ4, gzip or zstd.",
        shownDefault: "the kernel that set-up downloads",
      }),
      bootTimeoutMs: durationMs.default(10_000).meta({
        description: "How long the guest that checks KVM may take to boot, in milliseconds.",
      }),
    })
    .prefault({}),
  vmDocker: z
    .strictObject({
      images: z.array(absolutePath).default([]).meta({
        description: "Files written by `docker save`; every project's machine loads their images.",
        allowed: "absolute paths",
      }),
      allowedPaths: z.array(absolutePath).default([]).meta({
        description: "Directories of this host that sandboxes can copy as their workspace, including subdirectories.",
        allowed: "absolute paths",
      }),
      gitHosts: z.array(gitHost).default([]).meta({
        description:
          "Hosts of repositories that may have a private address or use http. Public hosts with https are always allowed.",
        allowed: "host names, with :port unless it is the usual one",
      }),
      workspaceMib: count.default(2048).meta({ description: "Maximum size of a workspace, in MiB." }),
      imageCacheMib: z.int().min(0).default(20_480).meta({
        description: "How much of the images that it pulled the node keeps for the machines of other projects, in MiB.",
      }),
      machineImage: optionalPath.meta({
        description:
          "Root filesystem of the machines: on Linux a directory, an ext4 image or an archive; on macOS a disk; on Windows an archive.",
        shownDefault: "on Linux, the one that set-up builds",
      }),
      kernel: optionalPath.meta({ description: "Kernel of the machines (Linux).", shownDefault: "Debian's" }),
      initrd: optionalPath.meta({
        description: "Initramfs of the machines (Linux), with the modules of `kernel`. Sandpiper adds its agent.",
        shownDefault: "the modules of Debian's kernel",
      }),
      volumesMib: count.default(20_480).meta({
        description: "Disk of a project's volumes and caches, in MiB. It outlives the machine if it has caches.",
      }),
      memoryMib: count.default(2048).meta({ description: "Memory of a project's machine, in MiB." }),
      vcpuCount: count.default(2).meta({ description: "CPUs of a project's machine." }),
      diskMib: count.default(20_480).meta({ description: "Disk of a project's machine, in MiB." }),
      idleMs: z
        .int()
        .min(0)
        .default(30 * 60_000)
        .meta({
          description:
            "How long a machine without sandboxes keeps running, in milliseconds; 0 stops it with its last sandbox.",
        }),
    })
    .prefault({}),
};
