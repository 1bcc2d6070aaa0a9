package records

// Usergroup is a patron group (mod-users).
var Usergroup = Type{
	Name: "group", Path: "/groups", Collection: "usergroups", Table: "usergroup", Schema: "usergroup",
	Permission: "usergroups", Interface: "users 16.5",
	Indexes: newIndexes(fields{Text: {"group", "desc", "source"}, Number: {"expirationOffsetInDays"}}),
	Unique:  uniqueFields("usergroup", "group"),
}

// User is a patron or a member of staff (mod-users).
var User = Type{
	Name: "user", Path: "/users", Collection: "users", Table: "users", Schema: "user",
	Permission: "users", Interface: "users 16.5", Lists: []string{"departments", "preferredEmailCommunication", "proxyFor"},
	Indexes: newIndexes(fields{
		Text: {
			"username", "barcode", "externalSystemId", "type", "tags.tagList", "departments",
			"personal.lastName", "personal.firstName", "personal.middleName", "personal.preferredFirstName", "personal.email",
			"personal.phone", "personal.mobilePhone", "customFields.*",
		},
		Boolean: {"active"},
		Time:    {"enrollmentDate", "expirationDate", "createdDate", "updatedDate", "personal.dateOfBirth"},
	}, "patronGroup").
		with("patronGroup.group", Index{Kind: Text, Column: "patron_group", Of: Usergroup.Table}).
		with("keywords", Index{Kind: Text, Parts: []string{
			"username", "personal.firstName", "personal.preferredFirstName", "personal.lastName", "personal.middleName",
			"personal.email", "barcode", "id", "externalSystemId", "$.customFields.*",
		}}),
	Unique: append(uniqueFields("users", "externalSystemId"),
		Unique{Constraint: "users_username_key", Fields: []string{"username"}, Message: "User with this username already exists"},
		Unique{Constraint: "users_barcode_key", Fields: []string{"barcode"}, Message: "This barcode has already been taken"}),
	References: []Reference{
		newReference("users", "patronGroup", "usergroup"),
		newLinks("users", "personal.addresses", "addresstype"),
	},
}

// ProxyFor lets one patron borrow for another (mod-users).
var ProxyFor = Type{
	Name: "proxy relationship", Path: "/proxiesfor", Collection: "proxiesFor", Table: "proxyfor", Schema: "proxyfor",
	Permission: "proxiesfor", Interface: "users 16.5",
	Indexes: newIndexes(fields{
		Text: {"status", "requestForSponsor", "notificationsTo", "accrueTo"}, Time: {"expirationDate", "createdDate"},
	}, "userId", "proxyUserId"),
	Unique: []Unique{{
		Constraint: "proxyfor_user_id_proxy_user_id_key", Fields: []string{"userId", "proxyUserId"},
		Message: "Proxy relationship already exists",
	}},
}

// feesFines is the interface of mod-feesfines, whose types are manual blocks and policies of fines and fees.
const feesFines = "feesfines 19.1"

// ManualBlock is a block that staff put on a patron (mod-feesfines).
var ManualBlock = Type{
	Name: "manual block", Path: "/manualblocks", Collection: "manualblocks", Table: "manualblocks", Schema: "manualblock",
	Permission: "manualblocks", Interface: feesFines,
	Indexes: newIndexes(fields{
		Text: {"type", "desc", "code", "staffInformation", "patronMessage"}, Boolean: {"borrowing", "renewals", "requests"},
		Time: {"expirationDate"},
	}, "userId"),
}
