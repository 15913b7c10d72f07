// What a person types at a shell. Each section prints its name and what came of it, without what differs from run to run:
// expected.txt has the output, which is the same on a mongod.
const volatile = ['$clusterTime', 'operationTime', 'electionId', 'opTime', 'serverInfo', 'serverParameters', 'queryHash', 'planCacheKey'];
const clean = (v) => Array.isArray(v) ? v.map(clean)
  : v && v.constructor === Object ? Object.fromEntries(Object.entries(v).filter(([k]) => !volatile.includes(k)).map(([k, x]) => [k, clean(x)])) : v;
function section(name, f) {
  print('== ' + name);
  try {
    const v = f();
    if (v !== undefined) printjson(clean(v));
  } catch (e) {
    print('error ' + e.code + ' ' + e.codeName);
  }
}
const pick = (v, ...names) => Object.fromEntries(names.map((n) => [n, v[n]]));

section('insert', () => db.flights.insertMany([
  { _id: 1, carrier: 'UA', delay: 12, at: ISODate('2013-01-01T05:15:00Z') }, { _id: 2, carrier: 'AA', delay: -3, tags: ['red', 'late'] },
  { _id: 3, carrier: 'UA', delay: 40, price: NumberDecimal('99.90'), long: NumberLong('9007199254740993') }, { _id: 4, carrier: 'B6' }]));
section('insert twice', () => db.flights.insertOne({ _id: 1 }));
section('find', () => db.flights.find({ carrier: 'UA' }).sort({ delay: -1 }).toArray());
section('projection', () => db.flights.find({}, { _id: 0, carrier: 1 }).sort({ _id: -1 }).limit(2).toArray());
section('update', () => db.flights.updateMany({ delay: { $exists: true } }, { $inc: { delay: 1 }, $set: { seen: true } }));
section('upsert', () => db.flights.updateOne({ _id: 9 }, { $set: { carrier: 'DL' } }, { upsert: true }));
section('replace', () => db.flights.replaceOne({ _id: 9 }, { carrier: 'WN' }));
section('find and modify', () => db.flights.findOneAndUpdate({ _id: 9 }, { $set: { delay: 5 } }, { returnDocument: 'after' }));
section('delete', () => db.flights.deleteOne({ _id: 9 }));
section('bulk write', () => db.flights.bulkWrite([{ insertOne: { document: { _id: 20 } } }, { deleteOne: { filter: { _id: 20 } } }]).deletedCount);
section('unknown operator', () => db.flights.find({ a: { $nope: 1 } }).toArray());
section('count', () => [db.flights.countDocuments({ carrier: 'UA' }), db.flights.estimatedDocumentCount(), db.flights.distinct('carrier')]);
section('cursor', () => {
  db.many.insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: i })));
  const c = db.many.find().batchSize(100);
  let n = 0;
  while (c.hasNext()) n += c.next()._id;
  return n;
});

section('create indexes', () => [db.flights.createIndex({ carrier: 1, delay: -1 }), db.flights.createIndex({ price: 1 }, { unique: true, sparse: true })]);
section('indexes', () => db.flights.getIndexes());
section('hide an index', () => pick(db.flights.hideIndex('price_1'), 'hidden_old', 'hidden_new', 'ok'));
section('drop an index', () => pick(db.flights.dropIndex('price_1'), 'nIndexesWas', 'ok'));
section('explain', () => {
  const e = db.flights.find({ carrier: 'UA' }).explain('executionStats');
  return [e.queryPlanner.namespace, e.queryPlanner.winningPlan.stage, e.queryPlanner.winningPlan.inputStage.indexName,
    Number(e.executionStats.nReturned), Number(e.executionStats.totalKeysExamined), e.command];
});
section('aggregate', () => db.flights.aggregate([{ $match: { delay: { $gt: 0 } } }, { $group: { _id: '$carrier', n: { $sum: 1 }, mean: { $avg: '$delay' } } }, { $sort: { _id: 1 } }]).toArray());
section('$out', () => { db.flights.aggregate([{ $match: { carrier: 'UA' } }, { $out: 'united' }]); return db.united.countDocuments(); });
section('view', () => { db.createView('late', 'flights', [{ $match: { delay: { $gt: 10 } } }]); return db.late.find({}, { delay: 1 }).sort({ _id: 1 }).toArray(); });
section('sizes of a view', () => db.runCommand({ collStats: 'late' }).code);
section('capped', () => { db.createCollection('log', { capped: true, size: 5000, max: 3 }); for (let i = 0; i < 5; i++) db.log.insertOne({ _id: i }); return [db.log.find().toArray(), db.log.isCapped()]; });
section('validator', () => { db.createCollection('checked', { validator: { a: { $type: 'int' } } }); return db.checked.insertOne({ a: 'x' }); });
section('collections', () => db.getCollectionInfos({ name: /^(log|checked|late)$/ }).map((c) => pick(c, 'name', 'type', 'options', 'idIndex')).sort((a, b) => a.name < b.name ? -1 : 1));
section('rename', () => [db.united.renameCollection('old').ok, db.getCollectionNames().filter((n) => n !== 'system.views').sort()]);
section('drop', () => db.old.drop());

section('transaction', () => {
  const s = db.getMongo().startSession(), d = s.getDatabase(db.getName());
  s.startTransaction();
  d.flights.insertOne({ _id: 30 });
  const seen = [d.flights.countDocuments({ _id: 30 }), db.flights.countDocuments({ _id: 30 })];
  s.abortTransaction();
  s.startTransaction();
  d.flights.insertOne({ _id: 31 });
  s.commitTransaction();
  s.endSession();
  return [...seen, db.flights.countDocuments({ _id: 30 }), db.flights.countDocuments({ _id: 31 })];
});
section('change stream', () => {
  const w = db.flights.watch([], { fullDocument: 'updateLookup' });
  w.disableBlockWarnings();
  db.flights.updateOne({ _id: 31 }, { $set: { a: 1 } });
  const first = w.next();
  db.flights.deleteOne({ _id: 31 });
  const events = [first, w.next()].map((e) => pick(e, 'operationType', 'ns', 'documentKey', 'fullDocument', 'updateDescription'));
  w.close();
  return events;
});
section('profiler', () => {
  const set = db.setProfilingLevel(2);
  db.flights.find({ carrier: 'B6' }).toArray();
  db.setProfilingLevel(0);
  return [set.was, db.getProfilingStatus().was, db.system.profile.find({ op: 'query', ns: db.getName() + '.flights' }).toArray().map((p) => [p.op, p.ns, p.command.filter, p.nreturned])];
});

section('stats of the database', () => pick(db.stats(), 'db', 'views', 'scaleFactor', 'ok'));
section('stats of a collection', () => {
  const s = db.many.stats();
  return [s.ns, s.count, s.size, s.avgObjSize, s.nindexes, s.capped, s.scaleFactor, Object.keys(s.indexSizes), s.storageSize > 0, s.totalSize >= s.totalIndexSize];
});
section('sizes', () => [db.many.dataSize(), db.many.storageSize() > 0, typeof db.many.totalIndexSize()]);
section('validate', () => pick(db.flights.validate(), 'ns', 'nInvalidDocuments', 'nrecords', 'nIndexes', 'keysPerIndex', 'valid', 'errors', 'ok'));
section('rs.status', () => { const s = rs.status(); return [s.set, s.myState, s.members.map((m) => pick(m, '_id', 'health', 'state', 'stateStr', 'self')), s.ok]; });
section('rs.conf', () => { const c = rs.conf(); return [c._id, c.members.map((m) => pick(m, '_id', 'arbiterOnly', 'buildIndexes', 'hidden', 'priority', 'tags', 'votes'))]; });
section('hello', () => pick(db.hello(), 'isWritablePrimary', 'secondary', 'setName', 'maxBsonObjectSize', 'maxWriteBatchSize', 'readOnly', 'ok'));
section('replication info', () => Object.keys(db.getReplicationInfo()).sort());
section('oplog', () => db.getSiblingDB('local').oplog.rs.find({ ns: db.getName() + '.flights', op: 'i' }).sort({ $natural: 1 }).limit(1).toArray().map((e) => pick(e, 'op', 'ns', 'o')));
section('serverStatus', () => { const s = db.serverStatus(); return ['connections', 'network', 'opcounters', 'mem', 'metrics', 'repl', 'storageEngine', 'asserts'].filter((k) => !(k in s)); });
section('getLog', () => [Array.isArray(db.adminCommand({ getLog: 'startupWarnings' }).log), db.adminCommand({ getLog: '*' }).ok]);
section('currentOp', () => db.currentOp().inprog.length > 0);
section('help', () => typeof db.runCommand({ find: 1, help: true }).help);
section('unknown command', () => pick(db.runCommand({ nope: 1 }), 'ok', 'code', 'codeName'));

section('roles and users', () => {
  db.createRole({ role: 'keeper', privileges: [{ resource: { db: db.getName(), collection: 'log' }, actions: ['find'] }], roles: ['read'] });
  db.createUser({ user: 'ann', pwd: 'secret', roles: ['readWrite', 'keeper'], customData: { a: 1 } });
  db.grantRolesToUser('ann', ['dbAdmin']);
  db.revokeRolesFromUser('ann', ['readWrite']);
  return [db.getUser('ann').roles.map((r) => r.role).sort(), db.getUsers().users.length, db.getRole('keeper').inheritedRoles];
});
section('wrong password', () => db.auth('ann', 'wrong'));
section('login', () => [db.auth('ann', 'secret').ok, db.runCommand({ connectionStatus: 1 }).authInfo.authenticatedUsers, db.logout().ok]);
section('drop users', () => [db.dropUser('ann').ok, db.dropRole('keeper').ok]);
section('drop the database', () => db.dropDatabase());
