/** The gateway can't start as it is configured; the message says why and what to do, and needs no stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/** Starts a listener. Rejects with a StartError that names the settings where its address can't be had. */
export async function listening<T>(setting: string, address: Address, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    throw listenFailure(error, setting, address);
  }
}

function listenFailure(error: unknown, setting: string, address: Address): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const given = `${setting}=${address.port} on ${address.host}`;
  if (code === 'EADDRINUSE') {
    return new StartError(`${given} is taken: something listens there already. Stop it, or set ${setting} to another.`);
  }
  if (code === 'EACCES') {
    return new StartError(`${given} is not allowed to this user. Set ${setting} to a port above 1023.`);
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    const host = setting.replace('PORT', 'HOST');
    return new StartError(`${host}=${address.host} is no address of this machine. Set ${host} to one that is.`);
  }
  return error;
}
