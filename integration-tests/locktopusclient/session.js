// A session of the published client with two instances; the arguments are their host:port.
import assert from 'node:assert/strict';
import locktopus from '@locktopus/client';
import WebSocket from 'ws';

const { LocktopusClient } = locktopus;
const [first, second] = process.argv.slice(2).map((address) => {
  const [host, port] = address.split(':');
  return { host, port };
});
const write = (...path) => ({ type: 'write', path });
const read = (...path) => ({ type: 'read', path });

async function connect(options) {
  const client = new LocktopusClient(WebSocket, { namespace: 'npm', secure: false, ...options });
  await client.connect();
  return client;
}

// A free lock, a taken one, and its grant after the release.
const a = await connect(first);
const b = await connect(second);
assert.equal(await a.lock(write('books', '1'), read('users')), true);
assert.equal(a.getLockId(), '1');
assert.equal(await b.lock(write('books')), false);
assert.equal(b.isAcquired(), false);
const granted = b.acquire();
await a.release();
assert.equal(await granted, true);
assert.equal(b.isAcquired(), true);
assert.equal(b.getLockId(), '2');

// A release while the lock waits.
assert.equal(await a.lock(read('books', '2')), false);
const abandoned = a.acquire();
await a.release();
assert.equal(await abandoned, false);
await b.release();

// A release that meets the grant.
for (let i = 0; i < 200; i++) {
  assert.equal(await a.lock(write('race')), true);
  assert.equal(await b.lock(write('race')), false);
  await Promise.all([a.release(), b.release()]);
}

// The abandon time-out of a connection that closes.
const c = await connect({ ...second, abandonTimeoutMs: 200 });
assert.equal(await c.lock(write('kept')), true);
assert.equal(await a.lock(write('kept')), false);
const start = Date.now();
c.close();
assert.equal(await a.acquire(), true);
const took = Date.now() - start;
assert.ok(took >= 190 && took < 10000, `handed on after ${took} ms`);
await a.release();

// A mistake ends the connection with code 3000.
const offender = await connect(first);
await offender.lock(write('x'));
const closed = new Promise((resolve) => { offender.ws.onclose = resolve; });
offender.ws.send('{"action":"steal"}');
assert.equal((await closed).code, 3000);

a.close();
b.close();
console.log('session complete');
