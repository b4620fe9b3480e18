import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { BootSource, Drive, MachineConfiguration, SnapshotCreate, Vsock } from "../../api/api-requests.ts";
import { afterStart, beforeStart, Fault, hotplug } from "./faults.ts";
import { Guest } from "./guest.ts";
import { JailedFiles, readAt } from "./jailed-files.ts";
import { packMemory, unpackMemory } from "./snapshot-file.ts";
import { serveVsock } from "./vsock-server.ts";

export const VERSION = "1.16.1";
const MARK_BYTES = 16;

type Body = Readonly<Record<string, unknown>>;

/** Everything that a snapshot keeps except memory. */
interface Devices {
  readonly machine: MachineConfiguration;
  readonly boot?: Partial<BootSource>;
  readonly drives: readonly Drive[];
  readonly vsock?: Vsock;
  /** Identifies the disks of a snapshot, to refuse other disks when it is loaded. */
  readonly marks?: readonly string[];
}

/** The provider uses full snapshots only. */
interface SavedSnapshot extends Omit<SnapshotCreate, "snapshot_type"> {
  readonly snapshot_type?: "Full" | "Diff";
}

/** One microVM: which requests it accepts in which state, and what they do. */
export class DoubleMachine {
  state: "Not started" | "Running" | "Paused" = "Not started";
  readonly #files = new JailedFiles();
  readonly #directory: string;
  #devices: Devices = { machine: { vcpu_count: 1, mem_size_mib: 128 }, drives: [] };
  #isConfigured = false;
  #guest: Guest | undefined;
  /** Resuming a machine that was not saved while it was paused blocks its vsock device. */
  #isSaveTried = false;

  /** `directory` holds the guest's files, through a path that is short enough for sockets. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  get configuration(): MachineConfiguration {
    return this.#devices.machine;
  }

  async handle(kind: string, path: string, body: Body): Promise<void> {
    switch (kind) {
      case "PATCH /vm":
        return this.#change(body["state"] as string);
      case "PUT /snapshot/create":
        return this.#save(body as unknown as SavedSnapshot);
      case "PUT /snapshot/load":
        return await this.#load(body);
      case "PUT /actions":
        return await this.#act(body["action_type"] as string);
      default:
        await this.#configure(kind, path, body);
    }
  }

  async #configure(kind: string, path: string, body: Body): Promise<void> {
    if (this.state !== "Not started") throw kind === "PUT /drives/" ? hotplug() : afterStart();
    this.#isConfigured = true;
    if (kind === "PUT /machine-config")
      this.#devices = { ...this.#devices, machine: body as unknown as MachineConfiguration };
    if (kind === "PUT /boot-source") this.#devices = { ...this.#devices, boot: this.#checkBoot(body) };
    if (kind === "PUT /vsock") {
      this.#devices = { ...this.#devices, vsock: body as unknown as Vsock };
      await this.#listen();
    }
    if (kind === "PUT /drives/") this.#attach(path, body as unknown as Drive);
  }

  #checkBoot(body: Body): Partial<BootSource> {
    const boot = body as Partial<BootSource>;
    for (const file of [boot.kernel_image_path, boot.initrd_path]) {
      if (file !== undefined) within("Boot source error", () => this.#files.require(file, "read"));
    }
    return boot;
  }

  #attach(path: string, drive: Drive): void {
    const id = path.slice("/drives/".length);
    if (id !== drive.drive_id) {
      throw new Fault(`The id from the path [${id}] does not match the id from the body [${drive.drive_id}]!`);
    }
    within("Drive config error: Unable to create the virtio block device", () =>
      this.#files.require(drive.path_on_host, drive.is_read_only ? "read" : "write"),
    );
    const others = this.#devices.drives.filter(({ drive_id }) => drive_id !== id);
    if (drive.is_root_device && others.some(({ is_root_device }) => is_root_device)) {
      throw new Fault("Drive config error: A root block device already exists!");
    }
    this.#devices = { ...this.#devices, drives: [...others, drive] };
  }

  async #act(action: string): Promise<void> {
    if (action !== "InstanceStart") {
      if (this.state === "Not started") throw beforeStart();
      return;
    }
    if (this.state !== "Not started") throw afterStart();
    const { boot, drives } = this.#devices;
    if (boot?.kernel_image_path === undefined) {
      throw new Fault("Start microvm error: Cannot start microvm without kernel configuration.");
    }
    this.#files.requireKernel(this.#files.require(boot.kernel_image_path, "read"));
    for (const drive of drives) this.#files.requireExt4(this.#files.locate(drive.path_on_host));
    this.#guest = Guest.boot(this.#directory, this.#guestConfig());
    this.state = "Running";
    process.stdout.write("[    0.000000] the guest of the double boots\n");
  }

  #change(state: string): void {
    if (this.#guest === undefined) throw beforeStart();
    if (state === "Paused" && this.state === "Running") {
      this.#guest.pause();
      this.#isSaveTried = false;
    }
    if (state === "Resumed" && this.state === "Paused") {
      this.#guest.resume();
      if (!this.#isSaveTried) this.#guest.block();
    }
    this.state = state === "Paused" ? "Paused" : "Running";
  }

  #save({ snapshot_type, snapshot_path, mem_file_path }: SavedSnapshot): void {
    if (this.#guest === undefined) throw beforeStart();
    // The state of the devices is saved first, which resets them, also when the save fails later.
    this.#guest.resetConnections();
    if (this.state !== "Paused") throw new Fault("Create snapshot error: save/restore unavailable while running");
    this.#isSaveTried = true;
    const [state, memory] = within("Create snapshot error: Cannot write the snapshot file", () => [
      this.#files.requirePlace(snapshot_path),
      this.#files.requirePlace(mem_file_path),
    ]) as [string, string];
    const image = join(this.#directory, "image");
    this.#guest.save(image);
    packMemory(image, memory, { memoryMib: this.configuration.mem_size_mib, isSparse: snapshot_type === "Diff" });
    rmSync(image, { recursive: true });
    // A new mark, so that older copies of the disks no longer match.
    for (const drive of this.#devices.drives) if (!drive.is_read_only) mark(this.#files.locate(drive.path_on_host));
    writeFileSync(state, JSON.stringify({ version: VERSION, devices: { ...this.#devices, marks: this.#marks() } }));
  }

  async #load(body: Body): Promise<void> {
    if (this.state !== "Not started") throw afterStart();
    if (this.#isConfigured) {
      throw new Fault(
        "Load snapshot error: Loading a microVM snapshot not allowed after configuring boot-specific resources.",
      );
    }
    const backend = body["mem_backend"] as
      | { readonly backend_path?: string; readonly backend_type?: string }
      | undefined;
    try {
      await this.#restore(String(body["snapshot_path"]), String(backend?.backend_path ?? body["mem_file_path"]));
      if (body["resume_vm"] === true) this.state = "Running";
      else this.#change("Paused");
    } catch (error) {
      const words = error instanceof Error ? error.message : String(error);
      throw new Fault(`Load snapshot error: Failed to restore from snapshot: ${words}`, { isFatal: true });
    }
  }

  async #restore(snapshotPath: string, memoryPath: string): Promise<void> {
    const saved = JSON.parse(readFileSync(this.#files.require(snapshotPath, "read"), "utf8"));
    const memory = this.#files.require(memoryPath, "read");
    if (saved.version !== VERSION) throw new Fault("the snapshot is of another version");
    this.#devices = saved.devices;
    for (const drive of this.#devices.drives) {
      this.#files.require(drive.path_on_host, drive.is_read_only ? "read" : "write");
    }
    if (this.#marks().join() !== saved.devices.marks.join()) throw new Fault("the disks are not those of the snapshot");
    const image = join(this.#directory, "image");
    unpackMemory(memory, image);
    await this.#listen();
    this.#guest = Guest.restore(this.#directory, this.#guestConfig(), image);
    rmSync(image, { recursive: true });
    this.state = "Running";
  }

  /** Never over an existing file. */
  async #listen(): Promise<void> {
    const { vsock } = this.#devices;
    if (vsock === undefined) return;
    const path = this.#files.requirePlace(vsock.uds_path);
    if (existsSync(path)) throw new Fault("Vsock: Error binding to the host-side Unix socket: Address in use");
    // Relative to the jail.
    await serveVsock(vsock.uds_path.replace(/^\//, ""), (port, socket) => {
      if (this.#guest === undefined || this.#guest.isBlocked) return "silent";
      if (port !== this.#guest.port) return "refused";
      this.#guest.connect(socket);
      return "accepted";
    });
  }

  #guestConfig() {
    const disk = this.#devices.drives.find(({ is_read_only }) => !is_read_only);
    const diskBytes = disk === undefined ? 0 : statSync(this.#files.locate(disk.path_on_host)).size;
    return {
      memoryMib: this.configuration.mem_size_mib,
      diskMib: diskBytes / 2 ** 20,
      bootArguments: this.#devices.boot?.boot_args ?? "",
    };
  }

  /** The last bytes of a writable disk, or a digest of the first bytes of a read-only one. */
  #marks(): string[] {
    return this.#devices.drives.map((drive) => {
      const path = this.#files.locate(drive.path_on_host);
      if (!drive.is_read_only) return readAt(path, statSync(path).size - MARK_BYTES, MARK_BYTES).toString("hex");
      return createHash("sha256")
        .update(readAt(path, 0, 1024 * 1024))
        .digest("hex");
    });
  }
}

function mark(path: string): void {
  const descriptor = openSync(path, "r+");
  writeSync(descriptor, randomBytes(MARK_BYTES), 0, MARK_BYTES, statSync(path).size - MARK_BYTES);
  closeSync(descriptor);
}

function within<T>(where: string, act: () => T): T {
  try {
    return act();
  } catch (error) {
    throw new Fault(`${where}: ${error instanceof Error ? error.message : error}`);
  }
}
