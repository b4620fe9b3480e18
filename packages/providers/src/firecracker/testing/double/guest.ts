import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { openFifoPair } from "../../../host/fifo-pair.ts";
import type { ChannelEnds } from "../../../host/socket-channel.ts";
import { Fault } from "./faults.ts";

/** The port from the agent's arguments, which is the only one with a listener. */
export interface GuestConfig {
  readonly memoryMib: number;
  readonly diskMib: number;
  readonly bootArguments: string;
}

/** Passed in by the installer, because finding them would load half of Sandpiper in each double. */
const {
  DOUBLE_AGENT = "",
  DOUBLE_LAUNCHER = "",
  DOUBLE_RUNSC = "",
  DOUBLE_ROOT = "",
  DOUBLE_PADDING = "",
} = process.env;

const NAME = "guest";
const CAPABILITIES = ["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"]
  .concat(["SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"])
  .map((name) => `CAP_${name}`);

/**
 * The guest: the real agent as the first process of a gVisor sandbox, which can be paused, saved with its memory and
 * restored. Its standard input and output replace the vsock connection.
 */
export class Guest {
  readonly port: number | undefined;
  isBlocked = false;
  readonly #directory: string;
  readonly #config: GuestConfig;
  #ends: ChannelEnds | undefined;
  #connection: Socket | undefined;
  /** The agent may have an incomplete frame of the previous connection. */
  #isDirty = false;

  private constructor(directory: string, config: GuestConfig) {
    this.#directory = directory;
    this.#config = config;
    const port = / init,vsock:(\d+),/.exec(config.bootArguments)?.[1];
    this.port = port === undefined ? undefined : Number(port);
  }

  static boot(directory: string, config: GuestConfig): Guest {
    const guest = new Guest(directory, config);
    guest.#launch(["run", "--detach"]);
    return guest;
  }

  static restore(directory: string, config: GuestConfig, image: string): Guest {
    const guest = new Guest(directory, config);
    guest.#launch(["restore", "--detach", "--image-path", image]);
    return guest;
  }

  pause(): void {
    this.#run(["pause", NAME]);
  }

  resume(): void {
    this.#run(["resume", NAME]);
  }

  /** No byte from the host arrives any more. */
  block(): void {
    this.isBlocked = true;
  }

  resetConnections(): void {
    this.isBlocked = false;
    this.#connection?.destroy();
    this.#connection = undefined;
  }

  /** Saves a paused guest, which stays paused. */
  save(image: string): void {
    mkdirSync(image, { recursive: true });
    this.#isDirty = false;
    this.#run(["resume", NAME]);
    this.#run(["checkpoint", "--leave-running", "--image-path", image, NAME]);
    this.#run(["pause", NAME]);
  }

  /** Only the newest connection is served. */
  connect(socket: Socket): void {
    this.#connection?.destroy();
    this.#connection = socket;
    const { writer } = this.#ends ?? {};
    if (writer === undefined) return;
    if (this.#isDirty) writer.write(readFileSync(DOUBLE_PADDING));
    this.#isDirty = true;
    socket.on("data", (chunk) => {
      if (socket !== this.#connection || this.isBlocked || writer.write(chunk)) return;
      socket.pause();
      writer.once("drain", () => socket.resume());
    });
    socket.on("close", () => {
      if (socket === this.#connection) this.#connection = undefined;
    });
    socket.resume();
  }

  #launch(command: readonly string[]): void {
    mkdirSync(join(this.#directory, "runsc"), { recursive: true });
    writeFileSync(join(this.#directory, "config.json"), JSON.stringify(ociConfig(this.#config)));
    const layer = `--overlay2=root:dir=${this.#directory},size=${Math.max(this.#config.diskMib, 1)}m`;
    const words = [String(process.pid), this.#directory, DOUBLE_RUNSC, ...this.#flags(), layer, ...command];
    words.push("--bundle", this.#directory, NAME);
    // A detached process keeps its descriptors, so a pipe would never end.
    const { status } = spawnSync(DOUBLE_LAUNCHER, words, { stdio: "ignore" });
    if (status !== 0) throw new Fault(`the guest did not start: ${this.#log()}`, { isFatal: true });
    this.#open();
  }

  #open(): void {
    const ends = openFifoPair(this.#directory);
    if (ends === undefined) throw new Fault("the guest ended at once", { isFatal: true });
    this.#ends = ends;
    const reader = ends.startReader((chunk) => {
      // The buffer of the chunk is reused.
      if (this.#connection?.write(Buffer.from(chunk)) !== false) return;
      reader.pause();
      const goOn = () => reader.resume();
      this.#connection?.once("drain", goOn).once("close", goOn);
    });
    // Firecracker too exits when its guest reboots.
    reader.on("end", () => process.exit(0));
    ends.writer.on("error", () => {});
  }

  #run(command: readonly string[]): void {
    const [program = "", ...words] = [DOUBLE_RUNSC, ...this.#flags(), ...command];
    const { status } = spawnSync(program, words, { stdio: "ignore" });
    if (status !== 0) throw new Fault(`runsc ${command[0]} failed: ${this.#log()}`);
  }

  #log(): string {
    return readFileSync(join(this.#directory, "runsc.log"), "utf8");
  }

  #flags(): string[] {
    return [
      `--root=${join(this.#directory, "runsc")}`,
      `--log=${join(this.#directory, "runsc.log")}`,
      ...["--platform=systrap", "--network=none", "--gofer-network-namespace=new", "--host-settings=ignore"],
      ...["--file-access-mounts=exclusive", "--allow-suid", "--ignore-cgroups"],
    ];
  }
}

/** The sandbox that corresponds to the kernel's arguments. */
function ociConfig({ memoryMib, bootArguments }: GuestConfig): object {
  const processes = Number(/sandpiper\.processes=(\d+)/.exec(bootArguments)?.[1] ?? 512);
  const inside = "/.sandpiper/agent";
  const capabilities = Object.fromEntries(
    ["bounding", "effective", "inheritable", "permitted"].map((set) => [set, CAPABILITIES]),
  );
  return {
    ociVersion: "1.0.2",
    hostname: /sandpiper\.hostname=(\S+)/.exec(bootArguments)?.[1] ?? "localhost",
    root: { path: DOUBLE_ROOT, readonly: false },
    process: {
      args: [inside, "--channel", "stdio", "--default-user", "user"],
      cwd: "/",
      env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      user: { uid: 0, gid: 0 },
      capabilities,
      rlimits: [{ type: "RLIMIT_NPROC", soft: processes, hard: processes }],
    },
    mounts: [
      { destination: inside, type: "bind", source: DOUBLE_AGENT, options: ["rbind", "ro"] },
      { destination: "/dev/shm", type: "tmpfs", source: "tmpfs", options: ["mode=1777", `size=${memoryMib >> 1}m`] },
      { destination: "/tmp/.X11-unix", type: "tmpfs", source: "tmpfs", options: ["mode=1777", "size=64k"] },
    ],
    linux: { namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
}
