package mongo

import (
	"slices"
	"strings"
)

// knownActions are the actions that a role may allow: those of MongoDB, whether this server has a use for them or not.
const knownActions = "addShard advanceClusterTime allCollectionStats analyze analyzeShardKey anyAction appendOplogNote " +
	"applicationMessage applyOps auditConfigure authSchemaUpgrade bypassDefaultMaxTimeMS bypassDocumentValidation " +
	"bypassWriteBlockingMode changeCustomData changeOwnCustomData changeOwnPassword changePassword changeStream " +
	"checkFreeMonitoringStatus checkMetadataConsistency cleanupOrphaned clearJumboFlag collMod collStats compact " +
	"compactStructuredEncryptionData configureQueryAnalyzer connPoolStats connPoolSync convertToCapped cpuProfiler " +
	"createCollection createIndex createRole createSearchIndexes createUser dbCheck dbHash dbStats dropCollection " +
	"dropConnections dropDatabase dropIndex dropRole dropSearchIndex dropUser enableProfiler enableSharding " +
	"exportCollection find flushRouterConfig forceUUID fsync getClusterParameter getCmdLineOpts getDatabaseVersion " +
	"getDefaultRWConcern getLog getParameter getShardMap getShardVersion grantRole hostInfo impersonate " +
	"importCollection indexStats inprog insert internal invalidateUserCache issueDirectShardOperations " +
	"killAnyCursor killAnySession killCursors killop listCachedAndActiveUsers listCollections listDatabases " +
	"listIndexes listSearchIndexes listSessions listShards logRotate mergeChunks moveChunk netstat oidReset " +
	"operationMetrics planCacheIndexFilter planCacheRead planCacheWrite queryStatsRead queryStatsReadTransformed " +
	"reIndex refineCollectionShardKey remove removeShard renameCollectionSameDB replSetConfigure replSetGetConfig " +
	"replSetGetStatus replSetResizeOplog replSetStateChange reshardCollection resync revokeRole rotateCertificates " +
	"runTenantMigration serverStatus setAuthenticationRestriction setClusterParameter setDefaultRWConcern " +
	"setFeatureCompatibilityVersion setFreeMonitoring setParameter setUserWriteBlockMode shardedDataDistribution " +
	"shardingState shutdown splitChunk splitVector startBackgroundIndexBuild storageDetails top touch trafficRecord " +
	"transitionFromDedicatedConfigServer unlock update updateSearchIndex useTenant useUUID validate viewRole " +
	"viewUser"

// What the built-in roles allow, as MongoDB's manual has it ("Built-In Roles"), and as rolesInfo tells. Actions on shards and on
// time series are left out, as there are none here.
const (
	readActions = "changeStream collStats dbHash dbStats find killCursors listCollections listIndexes listSearchIndexes planCacheRead"
	writeOnly   = "compactStructuredEncryptionData convertToCapped createCollection createIndex createSearchIndexes dropCollection " +
		"dropIndex dropSearchIndex insert remove renameCollectionSameDB update updateSearchIndex"
	readWriteActions = readActions + " " + writeOnly
	dbAdminActions   = "bypassDocumentValidation collMod collStats compact convertToCapped createCollection createIndex createSearchIndexes " +
		"dbStats dropCollection dropDatabase dropIndex dropSearchIndex enableProfiler indexStats listCollections listIndexes listSearchIndexes " +
		"planCacheIndexFilter planCacheRead planCacheWrite reIndex renameCollectionSameDB storageDetails updateSearchIndex validate"
	profileActions   = "changeStream collStats convertToCapped createCollection dbHash dbStats dropCollection find killCursors listCollections listIndexes planCacheRead"
	userAdminActions = "changeCustomData changePassword createRole createUser dropRole dropUser grantRole revokeRole " +
		"setAuthenticationRestriction viewRole viewUser"
	monitorActions = "collStats dbStats getDatabaseVersion getShardVersion indexStats"
	monitorCluster = "allCollectionStats checkFreeMonitoringStatus connPoolStats getCmdLineOpts getDefaultRWConcern getLog getParameter " +
		"getShardMap hostInfo inprog listDatabases listSessions listShards netstat operationMetrics replSetGetConfig replSetGetStatus " +
		"serverStatus shardedDataDistribution shardingState top useUUID"
	managerCluster = "addShard appendOplogNote applicationMessage cleanupOrphaned flushRouterConfig getClusterParameter getDefaultRWConcern " +
		"listSessions listShards removeShard replSetConfigure replSetGetConfig replSetGetStatus replSetStateChange resync " +
		"runTenantMigration setClusterParameter setDefaultRWConcern setFeatureCompatibilityVersion setFreeMonitoring"
	hostCluster = "applicationMessage auditConfigure connPoolSync dropConnections flushRouterConfig fsync invalidateUserCache killAnyCursor " +
		"killAnySession killop logRotate oidReset replSetResizeOplog resync rotateCertificates setParameter shutdown touch trafficRecord unlock"
	restoreActions = "bypassDocumentValidation collMod convertToCapped createCollection createIndex createSearchIndexes dropCollection insert"
)

// grant makes a privilege of actions that are written one after the other.
func grant(x resource, actions string) privilege {
	list := strings.Fields(actions)
	slices.Sort(list)
	return privilege{Resource: x, Actions: slices.Compact(list)}
}

func onCluster(actions string) privilege { return grant(resource{Cluster: true}, actions) }

// onBuckets is about the buckets of all time series: they are collections of the system, which those who may do something with all
// collections of all databases may do it with.
func onBuckets(actions string) privilege {
	all := ""
	return grant(resource{Buckets: &all}, actions)
}

func onAnything(actions string) privilege { return grant(resource{AnyResource: true}, actions) }

// onDatabase is actions on all collections of a database, and, with db "", of all databases.
func onDatabase(db, actions string) privilege { return grant(namespace(db, ""), actions) }

func onCollection(db, collection, actions string) privilege {
	return grant(namespace(db, collection), actions)
}

// databaseRoles are the built-in roles that every database has.
func databaseRoles() []string {
	return []string{"dbAdmin", "dbOwner", "enableSharding", "read", "readWrite", "userAdmin"}
}

// clusterRoles are the built-in roles of the database admin.
func clusterRoles() []string {
	return []string{"__queryableBackup", "__system", "backup", "clusterAdmin", "clusterManager", "clusterMonitor", "dbAdminAnyDatabase",
		"hostManager", "readAnyDatabase", "readWriteAnyDatabase", "restore", "root", "userAdminAnyDatabase"}
}

// isBuiltin reports whether a role is one of those that every server has.
func isBuiltin(name authName) bool {
	return slices.Contains(databaseRoles(), name.Name) || name.DB == adminDB && slices.Contains(clusterRoles(), name.Name)
}

// builtinPrivileges returns what a built-in role allows.
func builtinPrivileges(name authName) []privilege {
	if name.DB == adminDB {
		if list := clusterPrivileges(name.Name); list != nil {
			return list
		}
	}
	return databasePrivileges(name.Name, name.DB)
}

// databasePrivileges returns what a role allows in one database.
func databasePrivileges(role, db string) []privilege {
	switch role {
	case "read":
		return []privilege{onDatabase(db, readActions), onCollection(db, "system.js", readActions)}
	case "readWrite":
		return []privilege{onDatabase(db, readWriteActions), onCollection(db, "system.js", readWriteActions)}
	case "dbAdmin":
		return []privilege{onDatabase(db, dbAdminActions), onCollection(db, "system.profile", profileActions)}
	case "userAdmin":
		return []privilege{onDatabase(db, userAdminActions)}
	case "dbOwner":
		return together(databasePrivileges("readWrite", db), databasePrivileges("dbAdmin", db), databasePrivileges("userAdmin", db))
	case "enableSharding":
		return []privilege{onDatabase("", "enableSharding refineCollectionShardKey reshardCollection")}
	}
	return nil
}

// clusterPrivileges returns what a role of the database admin allows.
func clusterPrivileges(role string) []privilege {
	switch role {
	case "readAnyDatabase":
		return append(databasePrivileges("read", ""), onBuckets(readActions), onCluster("listDatabases"))
	case "readWriteAnyDatabase":
		return append(databasePrivileges("readWrite", ""), onBuckets(readWriteActions), onCluster("listDatabases"))
	case "dbAdminAnyDatabase":
		return append(databasePrivileges("dbAdmin", ""), onBuckets(dbAdminActions), onCluster("applyOps listDatabases"))
	case "userAdminAnyDatabase":
		return append(userAdminPrivileges(), onDatabase("", userAdminActions+" listCachedAndActiveUsers"),
			onDatabase("local", userAdminActions), onDatabase("config", userAdminActions))
	case "clusterMonitor":
		return monitorPrivileges()
	case "clusterManager":
		return []privilege{onCluster(managerCluster), onDatabase("", "enableSharding moveChunk splitChunk splitVector"),
			onBuckets("clearJumboFlag enableSharding moveChunk refineCollectionShardKey reshardCollection splitChunk splitVector"),
			onDatabase("config", readActions+" insert remove update"), onDatabase("local", "insert remove update"),
			onCollection("local", "system.replset", readActions), onAnything("dbCheck")}
	case "hostManager":
		return []privilege{onCluster(hostCluster), onDatabase("", "killCursors")}
	case "clusterAdmin":
		return together(monitorPrivileges(), clusterPrivileges("clusterManager"), clusterPrivileges("hostManager"),
			[]privilege{onDatabase("", "dropDatabase"), onAnything("exportCollection importCollection")})
	case "backup":
		return backupPrivileges()
	case "restore":
		return restorePrivileges()
	case "root":
		return together(clusterPrivileges("readWriteAnyDatabase"), clusterPrivileges("dbAdminAnyDatabase"), clusterPrivileges("userAdminAnyDatabase"),
			clusterPrivileges("clusterAdmin"), backupPrivileges(), restorePrivileges(), []privilege{onAnything("validate"),
				onCollection("config", "system.preimages", "find remove"), onCluster("useTenant")})
	case "__queryableBackup":
		return append(backupPrivileges()[2:], onCluster("getParameter listDatabases useUUID"))
	case "__system":
		return []privilege{onAnything(anyAction)}
	}
	return nil
}

// together joins the privileges of several roles.
func together(lists ...[]privilege) []privilege {
	var out []privilege
	for _, list := range lists {
		for _, p := range list {
			out = addPrivilege(out, p)
		}
	}
	return out
}

func userAdminPrivileges() []privilege {
	return []privilege{
		onCluster("authSchemaUpgrade invalidateUserCache listDatabases viewUser"),
		onCollection("", usersCollection, readActions),
		onCollection(adminDB, usersCollection, readActions+" createIndex dropIndex"),
		onCollection(adminDB, rolesCollection, readActions+" createIndex dropIndex"),
		onCollection(adminDB, versionCollection, readActions),
		onCollection(adminDB, "system.backup_users", readActions),
	}
}

func monitorPrivileges() []privilege {
	return []privilege{
		onCluster(monitorCluster), onDatabase("", monitorActions),
		onDatabase("config", readActions+" "+monitorActions), onDatabase("local", readActions+" "+monitorActions),
		onCollection("config", "system.sessions", monitorActions), onCollection("config", "system.js", readActions),
		onCollection("local", "system.js", readActions), onCollection("local", "system.replset", "find"),
		onCollection("", "system.profile", "find"),
	}
}

func backupPrivileges() []privilege {
	return []privilege{
		onCluster("appendOplogNote getParameter listDatabases serverStatus setUserWriteBlockMode useUUID"),
		onCollection("config", "settings", "find insert update"),
		onAnything("collStats listCollections listIndexes listSearchIndexes"),
		onDatabase("", "find"), onDatabase("config", "find"), onDatabase("local", "find"), onBuckets("find"),
		onCollection("", "system.js", "find"), onCollection("", usersCollection, "find"), onCollection("", "system.profile", "find"),
		onCollection(adminDB, "system.backup_users", "find"), onCollection(adminDB, rolesCollection, "find"),
		onCollection(adminDB, versionCollection, "find"),
	}
}

func restorePrivileges() []privilege {
	return []privilege{
		onDatabase("", restoreActions+" "+userAdminActions), onCollection("", "system.js", restoreActions), onAnything("listCollections"),
		onDatabase("config", restoreActions), onDatabase("local", restoreActions), onBuckets(restoreActions),
		onCollection(adminDB, "tempusers", "find"), onCollection(adminDB, "temproles", "find"),
		onCollection(adminDB, "system.backup_users", restoreActions),
		onCollection(adminDB, versionCollection, restoreActions+" find"),
		onCollection("", usersCollection, restoreActions+" find remove update"),
		onCluster("applyOps bypassWriteBlockingMode forceUUID getParameter setUserWriteBlockMode useUUID"),
		onCollection(adminDB, rolesCollection, "createIndex"),
	}
}
