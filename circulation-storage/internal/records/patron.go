package records

// ProxyFor says that one patron may borrow for another (mod-users).
func ProxyFor() Type {
	return Type{
		Name: "proxy relationship", Path: "/proxiesfor", Collection: "proxiesFor", Table: "proxyfor", Schema: "proxyfor",
		Permission: "proxiesfor",
		Indexes: index(fields{
			Text: {"status", "requestForSponsor", "notificationsTo", "accrueTo"}, Time: {"expirationDate", "createdDate"},
		}, columns{"userId": "user_id", "proxyUserId": "proxy_user_id"}),
		Unique: []Unique{{
			Constraint: "proxyfor_user_id_proxy_user_id_key", Fields: []string{"userId", "proxyUserId"},
			Message: "Proxy relationship already exists",
		}},
	}
}

// ManualBlock is a block that staff put on a patron (mod-feesfines).
func ManualBlock() Type {
	return Type{
		Name: "manual block", Path: "/manualblocks", Collection: "manualblocks", Table: "manualblocks", Schema: "manualblock",
		Permission: "manualblocks",
		Indexes: index(fields{
			Text: {"type", "desc", "code", "staffInformation", "patronMessage"}, Boolean: {"borrowing", "renewals", "requests"},
			Time: {"expirationDate"},
		}, columns{"userId": "user_id"}),
	}
}
