package mongo

import (
	"slices"
	"strings"
)

// managementRules returns the rules of the commands on users and roles.
func managementRules() map[string]rule {
	return map[string]rule{
		"createUser": ruleCreateUser, "updateUser": ruleUpdateUser, "dropUser": databaseRule("dropUser"),
		"dropAllUsersFromDatabase": databaseRule("dropUser"), "grantRolesToUser": ruleGrantRoles, "revokeRolesFromUser": ruleRevokeRoles,
		"usersInfo": ruleUsersInfo, "createRole": ruleCreateRole, "updateRole": ruleUpdateRole, "dropRole": databaseRule("dropRole"),
		"dropAllRolesFromDatabase": databaseRule("dropRole"), "grantRolesToRole": ruleGrantRoles, "revokeRolesFromRole": ruleRevokeRoles,
		"grantPrivilegesToRole": ruleGrantPrivileges, "revokePrivilegesFromRole": ruleRevokePrivileges, "rolesInfo": ruleRolesInfo,
		"_mergeAuthzCollections": ruleMerge,
	}
}

// onRoles reports whether an action is allowed on the databases of the roles that the command lists.
func (r *request) onRoles(g *grants, action string) bool {
	if !r.has("roles") {
		return true
	}
	list, err := r.roles()
	if err != nil {
		return true // it will be refused
	}
	for _, n := range list {
		if !g.allows(n.DB, "", action) {
			return false
		}
	}
	return true
}

// onPrivileges reports whether an action is allowed on the databases of the privileges that the command lists.
func (r *request) onPrivileges(g *grants, action string) bool {
	if !r.has("privileges") {
		return true
	}
	list, err := r.privileges()
	if err != nil {
		return true // it will be refused
	}
	for _, p := range list {
		db := adminDB
		if p.Resource.DB != nil && *p.Resource.DB != "" {
			db = *p.Resource.DB
		}
		if !g.allows(db, "", action) {
			return false
		}
	}
	return true
}

// onRestrictions reports whether the command may set restrictions, if it does.
func (r *request) onRestrictions(g *grants) bool {
	return !r.has("authenticationRestrictions") || g.allows(r.db, "", "setAuthenticationRestriction")
}

func ruleCreateUser(r *request, g *grants) bool {
	return g.allows(r.db, "", "createUser") && r.onRoles(g, "grantRole") && r.onRestrictions(g)
}

// isSelf reports whether a name is that of the connection's user.
func (r *request) isSelf(name authName) bool {
	return name == authName{Name: r.conn.auth.user, DB: r.conn.auth.database}
}

// ruleUpdateUser tells apart what is changed. Who sets roles takes all away that were there, of whatever database.
func ruleUpdateUser(r *request, g *grants) bool {
	own := r.isSelf(authName{Name: r.targetName(), DB: r.db})
	if (r.has("pwd") || r.has("mechanisms")) && !g.allows(r.db, "", "changePassword") && !(own && g.allows(r.db, "", "changeOwnPassword")) {
		return false
	}
	if r.has("customData") && !g.allows(r.db, "", "changeCustomData") && !(own && g.allows(r.db, "", "changeOwnCustomData")) {
		return false
	}
	if r.has("roles") && !g.allows("", "", "revokeRole") {
		return false
	}
	return r.onRoles(g, "grantRole") && r.onRestrictions(g)
}

func ruleGrantRoles(r *request, g *grants) bool { return r.onRoles(g, "grantRole") }

func ruleRevokeRoles(r *request, g *grants) bool { return r.onRoles(g, "revokeRole") }

func ruleGrantPrivileges(r *request, g *grants) bool { return r.onPrivileges(g, "grantRole") }

func ruleRevokePrivileges(r *request, g *grants) bool { return r.onPrivileges(g, "revokeRole") }

func ruleCreateRole(r *request, g *grants) bool {
	return g.allows(r.db, "", "createRole") && r.onRoles(g, "grantRole") && r.onPrivileges(g, "grantRole") && r.onRestrictions(g)
}

func ruleUpdateRole(r *request, g *grants) bool {
	return g.allows("", "", "revokeRole") && r.onRoles(g, "grantRole") && r.onPrivileges(g, "grantRole") && r.onRestrictions(g)
}

// ruleUsersInfo lets everybody see themselves.
func ruleUsersInfo(r *request, g *grants) bool {
	who, err := r.whom("user")
	switch {
	case err != nil:
		return true // it will be refused
	case who.all:
		return g.allowsCluster("viewUser")
	case !who.exact:
		return g.allows(r.db, "", "viewUser")
	}
	for _, n := range who.named {
		if (!r.isSelf(n) || r.has("showCredentials")) && !g.allows(n.DB, "", "viewUser") {
			return false
		}
	}
	return true
}

// ruleRolesInfo lets everybody see the roles they have.
func ruleRolesInfo(r *request, g *grants) bool {
	what, err := r.whom("role")
	switch {
	case err != nil:
		return true // it will be refused
	case what.all:
		return g.allows("", "", "viewRole")
	case !what.exact:
		return g.allows(r.db, "", "viewRole")
	}
	for _, n := range what.named {
		if !g.allows(n.DB, "", "viewRole") && !slices.Contains(g.roles, n) {
			return false
		}
	}
	return true
}

// ruleMerge asks for everything that users and roles may be changed by: it may replace them all.
func ruleMerge(r *request, g *grants) bool {
	if !g.allowAll("", "", "createUser", "dropUser", "createRole", "dropRole", "grantRole", "revokeRole") {
		return false
	}
	for _, field := range []string{"tempUsersCollection", "tempRolesCollection"} {
		from, _ := r.args[field].StringValueOK()
		if db, name, _ := strings.Cut(from, "."); from != "" && !g.allows(db, name, "find") {
			return false
		}
	}
	return true
}
