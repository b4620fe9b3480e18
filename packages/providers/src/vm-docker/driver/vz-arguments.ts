/** The engine's vsock port in the guest; Docker's usual port. */
const ENGINE_PORT = 2375;

export interface VzMachine {
  readonly memoryMib: number;
  readonly vcpuCount: number;
  /** A bootable raw disk that serves its engine on vsock. */
  readonly disk: string;
  /** The firmware's variables; created if missing. */
  readonly variableStore: string;
  readonly engineSocket: string;
  /** The socket of vfkit's own API. */
  readonly controlSocket: string;
  readonly consoleLog: string;
}

/** vfkit's arguments for a machine without a network device. */
export function vzArguments(machine: VzMachine): string[] {
  const devices = [
    `virtio-blk,path=${machine.disk}`,
    "virtio-rng",
    `virtio-serial,logFilePath=${machine.consoleLog}`,
    // The host connects, the guest listens.
    `virtio-vsock,port=${ENGINE_PORT},socketURL=${machine.engineSocket},connect`,
  ];
  return [
    ...["--cpus", String(Math.ceil(machine.vcpuCount)), "--memory", String(machine.memoryMib)],
    ...["--bootloader", `efi,variable-store=${machine.variableStore},create`],
    ...["--restful-uri", `unix://${machine.controlSocket}`],
    ...devices.flatMap((device) => ["--device", device]),
  ];
}
